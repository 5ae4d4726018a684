//! nginx, as the upstream and as the proxy to compare with.

use std::fs;

use tempfile::TempDir;

use crate::Result;
use crate::process::{Process, free_port};

/// What the upstream answers from memory.
pub const SMALL: &str = "/small";

/// A file of 100 KB, which the system has in memory.
pub const LARGE: &str = "/large";

/// Runs as long as this lives.
pub struct Nginx {
    pub process: Process,
    pub folder: TempDir,
    pub port: u16,
}

/// What every contender passes requests on to.
pub struct Upstream(Nginx);

impl Upstream {
    pub fn start() -> Result<Self> {
        let server = format!(
            "root .;\nlocation = {SMALL} {{ return 200 'hello, world'; }}\n\
             location = {LARGE} {{ open_file_cache max=10; }}\n"
        );
        Ok(Self(Nginx::start(1, "", &server)?))
    }

    pub fn port(&self) -> u16 {
        self.0.port
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.0.port)
    }
}

/// A proxy in front of the upstream, which may limit each address to a rate and a burst.
pub fn front(upstream: &Upstream, quota: Option<(u32, u32)>) -> Result<Nginx> {
    let (zone, limit) = quota.map_or_else(Default::default, |(rate, burst)| {
        let zone = "limit_req_zone $binary_remote_addr zone=addresses:10m";
        let limit = format!("limit_req zone=addresses burst={burst} nodelay;");
        (format!("{zone} rate={rate}r/s;\n"), format!("{limit}\nlimit_req_status 429;\n"))
    });
    let service = format!("server 127.0.0.1:{}; keepalive 64; {KEEP}", upstream.port());
    let workers = std::thread::available_parallelism()?.get();
    let http = format!("upstream service {{ {service} }}\n{zone}");
    Nginx::start(workers, &http, &format!("location / {{\n{PASS}{limit}}}\n"))
}

/// Tells the upstream what Spillgate tells it, and needs no file for a response.
const PASS: &str = "\
proxy_pass http://service;
proxy_http_version 1.1;
proxy_set_header Connection '';
proxy_set_header Host $http_host;
proxy_set_header X-Forwarded-For $remote_addr;
proxy_set_header X-Forwarded-Proto $scheme;
proxy_set_header X-Forwarded-Host $http_host;
proxy_buffers 32 8k;
";

/// As many requests on a connection as come: by default nginx closes one after a thousand.
const KEEP: &str = "keepalive_requests 100000000;";

impl Nginx {
    fn start(workers: usize, http: &str, server: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        let port = free_port()?;
        let config = format!(
            "daemon off;\nworker_processes {workers};\npid nginx.pid;\nerror_log stderr crit;\n\
             events {{ worker_connections 4096; }}\n\
             http {{\naccess_log off;\nsendfile on;\ntcp_nopush on;\n{KEEP}\n\
             client_body_temp_path body;\nproxy_temp_path proxy;\nfastcgi_temp_path fastcgi;\n\
             uwsgi_temp_path uwsgi;\nscgi_temp_path scgi;\n{http}\
             server {{\nlisten 127.0.0.1:{port} backlog=4096;\n{server}}}\n}}\n"
        );
        fs::write(folder.path().join("nginx.conf"), config)?;
        fs::write(folder.path().join("large"), vec![b'x'; 100_000])?;
        // Workers of a nginx that root starts are nobody, and must get in.
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let place = format!("{}/", folder.path().display());
        let args = ["-p", &place, "-c", "nginx.conf", "-e", "stderr"];
        let process = Process::start_family("nginx", &args)?.once_it_listens("nginx", &[port])?;
        Ok(Self { process, folder, port })
    }
}
