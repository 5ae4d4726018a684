mod leases;
mod slices;
mod source;
