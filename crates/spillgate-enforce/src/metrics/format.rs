use std::fmt::Write;

use http::HeaderMap;
use http::header::ACCEPT;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// The format that metrics are written in.
///
/// ```
/// use http::HeaderMap;
/// use http::header::ACCEPT;
/// use spillgate_enforce::MetricsFormat;
///
/// let mut headers = HeaderMap::new();
/// assert_eq!(MetricsFormat::accepted(&headers), MetricsFormat::Text);
/// headers.insert(ACCEPT, "application/openmetrics-text; version=1.0.0, text/plain; q=0.5".parse()?);
/// assert_eq!(MetricsFormat::accepted(&headers), MetricsFormat::OpenMetrics);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsFormat {
    /// The text format of Prometheus, which everything reads.
    #[default]
    Text,
    /// [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/) 1.0.
    OpenMetrics,
}

impl MetricsFormat {
    /// The format that a client prefers by its `Accept`: the text format unless it names OpenMetrics.
    #[must_use]
    pub fn accepted(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
        let (mut text, mut open_metrics) = (0.0_f32, 0.0_f32);
        for range in lines.flat_map(|line| line.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut quality, mut is_known) = (1.0_f32, true);
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name.trim().to_ascii_lowercase().as_str() {
                    "q" => quality = value.trim().parse().unwrap_or(0.0),
                    "version" => is_known = value.trim().trim_matches('"') == "1.0.0",
                    _ => {}
                }
            }
            match kind.as_str() {
                "application/openmetrics-text" if is_known => {
                    open_metrics = open_metrics.max(quality);
                }
                "text/plain" | "text/*" | "*/*" => text = text.max(quality),
                _ => {}
            }
        }
        if open_metrics > 0.0 && open_metrics >= text { Self::OpenMetrics } else { Self::Text }
    }

    /// The content type of what is [written](Self::encode).
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Writes all metrics of a registry.
    #[must_use]
    pub fn encode(self, registry: &Registry) -> String {
        let mut encoded = String::new();
        // A `String` takes everything.
        let _ = text::encode(&mut encoded, registry);
        match self {
            Self::Text => classic(&encoded),
            Self::OpenMetrics => encoded,
        }
    }
}

/// OpenMetrics as the text format: there a family has the name of its samples, and there are
/// neither units nor an end.
fn classic(open_metrics: &str) -> String {
    let mut classic = String::with_capacity(open_metrics.len() + 1024);
    let mut help = "";
    for line in open_metrics.lines() {
        // What is written before the type is known, is written with it.
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.rsplit_once(' ').unwrap_or((rest, "untyped"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            let _ = writeln!(classic, "# HELP {name}{suffix} {help}");
            let _ = writeln!(classic, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            let _ = writeln!(classic, "{line}");
        }
    }
    classic
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::metrics::info::Info;
    use prometheus_client::registry::Unit;

    use super::*;

    #[test]
    fn openmetrics_is_for_those_who_prefer_it() {
        for (accept, expected) in [
            ("", MetricsFormat::Text),
            ("*/*", MetricsFormat::Text),
            ("text/html, */*; q=0.1", MetricsFormat::Text),
            ("text/plain; version=0.0.4", MetricsFormat::Text),
            ("application/openmetrics-text", MetricsFormat::OpenMetrics),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"; Q=0.2", MetricsFormat::OpenMetrics),
            ("application/openmetrics-text; version=0.0.1", MetricsFormat::Text),
            ("application/openmetrics-text; q=0", MetricsFormat::Text),
            ("application/openmetrics-text; q=0.4, text/plain; q=0.5", MetricsFormat::Text),
            ("text/plain; q=0.4, application/openmetrics-text; q=0.5", MetricsFormat::OpenMetrics),
            ("application/openmetrics-text, */*", MetricsFormat::OpenMetrics),
            ("application/openmetrics-text; q=x", MetricsFormat::Text),
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;\
                 version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                MetricsFormat::OpenMetrics,
            ),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(MetricsFormat::accepted(&headers), expected, "{accept}");
        }
    }

    #[test]
    fn families_have_the_names_of_their_samples_in_the_text_format() {
        let mut registry = Registry::default();
        registry.register("calls", "Calls", Counter::<u64>::default());
        registry.register("build", "Which it is", Info::new([("version", "1 # TYPE")]));
        registry.register_with_unit("size", "How large", Unit::Bytes, Gauge::<i64>::default());
        let text = "# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total 0\n\
            # HELP build_info Which it is.\n# TYPE build_info gauge\n\
            build_info{version=\"1 # TYPE\"} 1\n\
            # HELP size_bytes How large.\n# TYPE size_bytes gauge\nsize_bytes 0\n";
        assert_eq!(MetricsFormat::Text.encode(&registry), text);
        let open_metrics = MetricsFormat::OpenMetrics.encode(&registry);
        assert!(open_metrics.contains("# TYPE calls counter\n"), "{open_metrics}");
        assert!(open_metrics.ends_with("# EOF\n"), "{open_metrics}");
    }
}
