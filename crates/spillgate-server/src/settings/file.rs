//! The tables `[server]`, `[store]` and `[proxy]` of the file.

use std::path::PathBuf;

use spillgate_policy::{Settings as Table, Tables};

use super::proxy::GivenProxy;
use super::store::GivenStore;
use super::{Given, Token, range};

impl Given {
    /// What the file says.
    pub(super) fn decode(tables: &mut Tables<'_, '_>) -> Self {
        let store = tables.store(GivenStore::decode).unwrap_or_default();
        let proxy = tables.proxy(GivenProxy::decode).unwrap_or_default();
        Self { store, proxy, ..tables.server(Self::of_server).unwrap_or_default() }
    }

    fn of_server(server: &mut Table<'_, '_>) -> Self {
        let path =
            |server: &mut Table<'_, '_>, key, example| server.text(key, example).map(PathBuf::from);
        Self {
            http: server.parsed("http", "127.0.0.1:8390"),
            resp: server.parsed("resp", "127.0.0.1:6390"),
            grpc: server.parsed("grpc", "127.0.0.1:8391"),
            admin: server.parsed("admin", "127.0.0.1:8392"),
            envoy_config: path(server, "envoy-config", "/etc/ratelimit"),
            envoy_algorithm: server.parsed("envoy-algorithm", "fixed-window"),
            tls_certificate: path(server, "tls-certificate", "certificate.pem"),
            tls_key: path(server, "tls-key", "key.pem"),
            token: server
                .secret::<Token>("token", "the output of openssl rand -hex 32")
                .map(Into::into),
            token_file: path(server, "token-file", "token"),
            hosts: server.several("hosts", "limits.example.com"),
            auth_from: server.several("auth-from", "10.0.0.0/8"),
            grpc_from: server.several("grpc-from", "10.0.0.0/8"),
            metrics_open: server.boolean("metrics-open"),
            snapshot: path(server, "snapshot", "/var/lib/spillgate/state"),
            snapshot_every: server.parsed("snapshot-every", "30s"),
            throttle_capacity: server.number("throttle-capacity", range::COUNT, 1_000_000),
            reservations: server.number("reservations", range::COUNT, 100_000),
            connections: server.number("connections", range::COUNT, 10_000),
            http_idle: server.parsed("http-idle", "90s"),
            resp_idle: server.parsed("resp-idle", "1h"),
            resp_buffers: server.number("resp-buffers", range::BUFFERS, 64 << 20),
            stalled: server.parsed("stalled", "30s"),
            http_head: server.number("http-head", range::HEAD, 16_384),
            http_body: server.number("http-body", range::BODY, 1 << 20),
            lame_duck: server.parsed("lame-duck", "1s"),
            drain: server.parsed("drain", "10s"),
            log_format: server.parsed("log-format", "json"),
            log_level: server.parsed("log-level", "info"),
            store: GivenStore::default(),
            proxy: GivenProxy::default(),
        }
    }
}
