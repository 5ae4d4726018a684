//! What a client of gRPC may send.

/// Bytes of a message. Envoy's are of some hundred.
pub(super) const MESSAGE: usize = 64 * 1024;

/// Descriptors of a call.
pub(super) const DESCRIPTORS: usize = 256;

/// Entries of a descriptor.
pub(super) const ENTRIES: usize = 64;

/// Calls that a connection may have open. Those beyond wait with the client.
pub(super) const STREAMS: u32 = 1_024;

/// Bytes of messages that a connection may have under way.
pub(super) const WINDOW: u32 = 1024 * 1024;
