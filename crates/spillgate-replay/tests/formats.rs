//! Lines of every format.

use http::HeaderName;
use spillgate_replay::{LogFormat, Parser, Wanted, Zone, detect};

/// What a line says, as text.
fn read(log: &str, zone: &str) -> (&'static str, String) {
    let lines: Vec<_> = log.lines().collect();
    let format = detect(&lines).unwrap();
    let names = ["user-agent", "referer", "x-forwarded-for"].map(HeaderName::from_static);
    let zone = Zone::parse(zone.as_bytes()).unwrap();
    let mut parser = Parser::new(format, &Wanted::new(&names), zone);
    let mut read = String::new();
    for line in lines {
        let Some(record) = parser.parse(line.as_bytes()).unwrap() else { continue };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let seconds = record.time.as_nanos() as f64 / 1e9;
        read = format!("{seconds:.3} {} {}", record.peer, text(record.method));
        read += &format!(" {} {} {}", record.host.unwrap_or("-"), record.path, record.status);
        read += &record.user.map(|user| format!(" user={}", text(user))).unwrap_or_default();
        for (place, value) in &record.headers {
            read += &format!(" {}={}", names[*place], text(value));
        }
    }
    (format.name(), read)
}

#[test]
fn every_format_is_recognised_and_read() {
    for (name, log, expected) in [
        (
            "combined",
            r#"203.0.113.7 - - [17/Nov/2026:04:32:40 +0000] "GET /a?b HTTP/1.1" 200 612 "https://e.example/" "curl/8""#,
            "1794889960.000 203.0.113.7 GET - /a 200 referer=https://e.example/ user-agent=curl/8",
        ),
        (
            "combined",
            r#"203.0.113.7 - frank [16/Nov/2026:23:32:40 -0500] "POST /a HTTP/2.0" 404 -"#,
            "1794889960.000 203.0.113.7 POST - /a 404 user=frank",
        ),
        (
            "combined",
            r#"10.0.0.2 - - [17/Nov/2026:04:32:40 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8" "203.0.113.7, 10.0.0.9""#,
            "1794889960.000 10.0.0.2 GET - / 200 user-agent=curl/8 x-forwarded-for=203.0.113.7, 10.0.0.9",
        ),
        (
            "combined",
            r#"2001:db8::1 - - [17/Nov/2026:04:32:40 +0000] "GET /api HTTP/2.0" 200 19 "-" "-" 4 "api@docker" "http://10.0.0.1:80" 3ms"#,
            "1794889960.000 2001:db8::1 GET - /api 200",
        ),
        (
            "combined",
            r#"203.0.113.7 - a [x] b [17/Nov/2026:04:32:40 +0000] "GET /\x22q\"\xC3\xA9 HTTP/1.1" 200 5 "-" "a\"b""#,
            "1794889960.000 203.0.113.7 GET - /\"q\"é 200 user=a [x] b user-agent=a\"b",
        ),
        (
            "vhost_combined",
            r#"a.example:443 203.0.113.7 - - [17/Nov/2026:04:32:40 +0000] "GET / HTTP/1.1" 200 612 "-" "-""#,
            "1794889960.000 203.0.113.7 GET a.example:443 / 200",
        ),
        (
            "json",
            r#"{"level":"info","ts":1794889960.25,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"203.0.113.7","remote_port":"4711","client_ip":"198.51.100.1","proto":"HTTP/1.1","method":"GET","host":"a.example","uri":"/a?b","headers":{"User-Agent":["curl/8"],"X-Forwarded-For":["198.51.100.1"]}},"user_id":"","duration":0.001,"size":5,"status":200}"#,
            "1794889960.250 203.0.113.7 GET a.example /a 200 user-agent=curl/8 x-forwarded-for=198.51.100.1",
        ),
        (
            "json",
            r#"{"ClientAddr":"203.0.113.7:4711","ClientHost":"203.0.113.7","ClientUsername":"-","DownstreamStatus":429,"RequestHost":"a.example","RequestMethod":"PUT","RequestPath":"/a","StartUTC":"2026-11-17T04:32:40.5Z","request_User-Agent":"curl/8","time":"2026-11-17T04:32:41Z"}"#,
            "1794889960.500 203.0.113.7 PUT a.example /a 429 user-agent=curl/8",
        ),
        (
            "json",
            r#"{"time_iso8601":"2026-11-17T04:32:40+00:00","remote_addr":"203.0.113.7","request":"GET /a HTTP/1.1","status":"200","http_user_agent":"curl/8"}"#,
            "1794889960.000 203.0.113.7 GET - /a 200 user-agent=curl/8",
        ),
        (
            "envoy",
            r#"[2026-11-17T04:32:40.250Z] "GET /a?b HTTP/1.1" 200 - 0 5 3 2 "198.51.100.1,203.0.113.7" "curl/8" "0b9f3c52" "a.example" "10.0.0.1:80""#,
            "1794889960.250 203.0.113.7 GET a.example /a 200 x-forwarded-for=198.51.100.1 user-agent=curl/8",
        ),
        (
            "haproxy",
            r#"Nov 17 06:32:40 web haproxy[14389]: 203.0.113.7:33317 [17/Nov/2026:06:32:40.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1""#,
            "1794889960.655 203.0.113.7 GET - /index.html 200",
        ),
        (
            "alb",
            r#"https 2026-11-17T04:32:43.186641Z app/lb/50dc 203.0.113.7:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://a.example:443/a?b HTTP/1.1" "curl/8" ECDHE TLSv1.2 arn:aws:x "Root=1-58" "a.example" "arn:aws:acm" 1 2026-11-17T04:32:40.250000Z "authenticate,forward" "-" "-""#,
            "1794889960.250 203.0.113.7 GET a.example:443 /a 200 user-agent=curl/8",
        ),
        (
            "cloudfront",
            "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) x-host-header\n2026-11-17\t04:32:40\tFRA56\t5\t203.0.113.7\tGET\td1.cloudfront.net\t/a\t200\t-\tcurl/8%20x\ta.example",
            "1794889960.000 203.0.113.7 GET a.example /a 200 user-agent=curl/8 x",
        ),
        (
            "csv",
            "timestamp,client_ip,method,path,status,user_agent\n2026-11-17T04:32:40.1Z,203.0.113.7,GET,\"/a,\"\"b\"\"\",200,curl/8",
            "1794889960.100 203.0.113.7 GET - /a,\"b\" 200 user-agent=curl/8",
        ),
        (
            "csv",
            "\u{feff}date;ip;request\n17/Nov/2026:04:32:40 +0000;203.0.113.7;GET /a HTTP/1.1",
            "1794889960.000 203.0.113.7 GET - /a 0",
        ),
    ] {
        let zone = if name == "haproxy" { "+02:00" } else { "Z" };
        assert_eq!(read(log, zone), (name, expected.to_owned()), "{log}");
    }
}

#[test]
fn an_unknown_format_is_named_with_its_first_line_and_the_closest_one() {
    for (line, closest) in [
        ("203.0.113.7 17/Nov/2026 \"GET / HTTP/1.1\" 200 612 \"-\" \"curl/8\"", "combined"),
        ("[2026-11-17T04:32:40.123Z] \"GET / HTTP/1.1\" 200 - 0 5 3 2 \"-\"", "envoy"),
        ("{\"no\":\"log\",\"of\":{\"requests\":1},\"status\":200}", "json"),
        ("\u{1b}[31mhello", "csv"),
    ] {
        let error = detect(&[line]).unwrap_err();
        assert!(error.contains(&format!("The closest format is {closest}")), "{line}: {error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
        assert!(error.contains("First line: "), "{error}");
    }
    let error = LogFormat::from_name("iis").unwrap_err();
    assert!(error.starts_with("\"iis\" is no log format; use one of json, caddy"), "{error}");
}

#[test]
fn every_example_is_of_its_format() {
    for name in ["json", "alb", "envoy", "haproxy", "combined", "vhost_combined"] {
        let format = LogFormat::from_name(name).unwrap();
        assert_eq!(detect(&[format.example()]).unwrap(), format, "{name}");
    }
}
