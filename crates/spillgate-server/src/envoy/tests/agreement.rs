//! Descriptors meet the limits that envoyproxy/ratelimit finds for them, and are counted together
//! where it counts them together.

use spillgate::AlgorithmKind;
use spillgate_policy::{
    Descriptor, DescriptorKind, DescriptorOutcome, Descriptors, Gate, Mode, Policy, PolicyBuilder,
    Quota,
};

use super::super::load;

/// What the files of a folder say, what is asked, and what is met.
///
/// Asked is `KEY=VALUE KEY=VALUE`, in the domain `edge` unless another is named. Met is the quota,
/// the name of the limit, and the keys each value of which it counts apart.
type Case = (&'static [&'static str], &'static [(&'static str, &'static str)]);

const LEVELS: &str = "
domain: edge
descriptors:
- key: tenant
  value: acme
  descriptors:
  - {key: plan, rate_limit: {unit: second, requests_per_unit: 5}}
  - {key: plan, value: gold, rate_limit: {unit: second, requests_per_unit: 10}}
- {key: address, rate_limit: {unit: minute, requests_per_unit: 20}}
- {key: address, value: 10.0.0.1, rate_limit: {unit: minute, requests_per_unit: 30}}
- {key: address, value: 10.0.0.2}
- {key: hourly, rate_limit: {unit: HOUR, requests_per_unit: 1}}
- {key: daily, rate_limit: {unit: Day, requests_per_unit: 1, name: once a day}}
- key: region
  value: north
  rate_limit: {unit: day, requests_per_unit: 15}
  descriptors:
  - {key: city, value: oslo, rate_limit: {unit: day, requests_per_unit: 25}}
- {key: free, rate_limit: {unlimited: true}}
- {key: watched, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 70}}
- {key: weekly, rate_limit: {unit: week, requests_per_unit: 2}}
- {key: monthly, rate_limit: {unit: month, requests_per_unit: 3}}
- {key: yearly, rate_limit: {unit: year, requests_per_unit: 4}}
- {key: shut, rate_limit: {unit: minute, requests_per_unit: 0}}
";

const OF_LEVELS: Case = (
    &[LEVELS],
    &[
        ("other:", "unknown"),
        ("other: address=10.0.0.1", "unknown"),
        ("", "unknown"),
        ("plan=gold", "unknown"),
        ("tenant=other", "unknown"),
        ("tenant=acme", "no limit"),
        ("tenant=acme plan=silver", "5/s edge/tenant=acme/plan, each plan"),
        ("tenant=acme plan=gold", "10/s edge/tenant=acme/plan=gold"),
        ("tenant=acme plan=", "5/s edge/tenant=acme/plan, each plan"),
        ("tenant=acme plan=gold plan=gold", "unknown"),
        ("plan=gold tenant=acme", "unknown"),
        ("address=192.0.2.1", "20/min edge/address, each address"),
        ("address=10.0.0.1", "30/min edge/address=10.0.0.1"),
        ("address=10.0.0.1 path=/", "unknown"),
        ("address=10.0.0.2", "no limit"),
        ("hourly=x", "1/h edge/hourly, each hourly"),
        ("daily=x", "1/day edge/daily \"once a day\", each daily"),
        ("region=north", "15/day edge/region=north"),
        ("region=north city=oslo", "25/day edge/region=north/city=oslo"),
        ("region=north city=bergen", "unknown"),
        ("free=x", "unlimited"),
        ("watched=a", "70/min edge/watched, each watched"),
        ("watched=b", "70/min edge/watched, each watched"),
        ("weekly=x", "2/week edge/weekly, each weekly"),
        ("monthly=x", "3 per 30 day edge/monthly, each monthly"),
        ("yearly=x", "4 per 365 day edge/yearly, each yearly"),
        ("shut=x", "closed edge/shut"),
    ],
);

const OF_SEVERAL_FILES: Case = (
    &[
        "domain: edge\ndescriptors:\n\
         - {key: a, value: one, rate_limit: {unit: minute, requests_per_unit: 10}}\n\
         - {key: a, value: x*, rate_limit: {unit: minute, requests_per_unit: 11}}\n",
        "domain: more\ndescriptors:\n\
         - {key: a, value: one, rate_limit: {unit: minute, requests_per_unit: 30}}\n",
        "domain: edge\ndescriptors:\n\
         - {key: a, value: two, rate_limit: {unit: minute, requests_per_unit: 20}}\n\
         - {key: a, value: xy*, rate_limit: {unit: minute, requests_per_unit: 21}}\n",
        "domain: edge\ndescriptors:\n",
    ],
    &[
        ("", "unknown"),
        ("a=three", "unknown"),
        ("a=one", "10/min edge/a=one"),
        ("a=two", "20/min edge/a=two"),
        ("a=xyz", "11/min edge/a=x*, each a"),
        ("more: a=one", "30/min more/a=one"),
        ("more: a=two", "unknown"),
    ],
);

const OF_SHADOWS: Case = (
    &["
domain: edge
descriptors:
- key: tenant
  value: acme
  descriptors:
  - {key: plan, rate_limit: {unit: second, requests_per_unit: 5}}
  - {key: plan, value: gold, shadow_mode: true, rate_limit: {unit: second, requests_per_unit: 10}}
- {key: address, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 20}}
- {key: address, value: 10.0.0.1, rate_limit: {unit: minute, requests_per_unit: 30}}
"],
    &[
        ("tenant=acme plan=silver", "5/s edge/tenant=acme/plan, each plan"),
        ("tenant=acme plan=gold", "shadow 10/s edge/tenant=acme/plan=gold"),
        ("address=192.0.2.1", "shadow 20/min edge/address, each address"),
        ("address=10.0.0.1", "30/min edge/address=10.0.0.1"),
    ],
);

const OF_WILDCARDS: Case = (
    &["
domain: edge
descriptors:
- {key: begins, value: img*, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: plain, value: img, rate_limit: {unit: minute, requests_per_unit: 2}}
- {key: alone, rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: ends, value: '*.png', rate_limit: {unit: minute, requests_per_unit: 4}}
- {key: within, value: /api/*/log, rate_limit: {unit: minute, requests_per_unit: 5}}
- {key: several, value: a*b*c, rate_limit: {unit: minute, requests_per_unit: 6}}
- {key: all, value: '*', rate_limit: {unit: minute, requests_per_unit: 7}}
- key: deep
  value: x
  descriptors:
  - {key: within, value: in*out, rate_limit: {unit: minute, requests_per_unit: 8}}
- {key: order, rate_limit: {unit: minute, requests_per_unit: 9}}
- {key: order, value: a*, rate_limit: {unit: minute, requests_per_unit: 10}}
- {key: order, value: ab*, rate_limit: {unit: minute, requests_per_unit: 11}}
- {key: order, value: abc, rate_limit: {unit: minute, requests_per_unit: 12}}
- key: back
  value: a*
  descriptors:
  - {key: to, value: one, rate_limit: {unit: minute, requests_per_unit: 13}}
- key: back
  descriptors:
  - {key: to, rate_limit: {unit: minute, requests_per_unit: 14}}
"],
    &[
        ("begins=img1", "1/min edge/begins=img*, each begins"),
        ("begins=img2", "1/min edge/begins=img*, each begins"),
        ("begins=img", "1/min edge/begins=img*, each begins"),
        ("begins=im", "unknown"),
        ("begins=ximg", "unknown"),
        ("plain=img", "2/min edge/plain=img"),
        ("plain=img1", "unknown"),
        ("alone=img1", "3/min edge/alone, each alone"),
        ("alone=img2", "3/min edge/alone, each alone"),
        ("ends=a.png", "4/min edge/ends=*.png, each ends"),
        ("ends=.png", "4/min edge/ends=*.png, each ends"),
        ("ends=a.png2", "unknown"),
        ("within=/api/7/log", "5/min edge/within=%2Fapi%2F*%2Flog, each within"),
        ("within=/api/7/8/log", "5/min edge/within=%2Fapi%2F*%2Flog, each within"),
        ("within=/api//log", "5/min edge/within=%2Fapi%2F*%2Flog, each within"),
        ("within=/api/log", "unknown"),
        ("within=/api/7/logs", "unknown"),
        ("within=x/api/7/log", "unknown"),
        ("several=abc", "6/min edge/several=a*b*c, each several"),
        ("several=a1b2c", "6/min edge/several=a*b*c, each several"),
        ("several=acbc", "6/min edge/several=a*b*c, each several"),
        ("several=ac", "unknown"),
        ("several=a1c", "unknown"),
        ("several=b2c", "unknown"),
        ("several=acb", "unknown"),
        ("all=x", "7/min edge/all=*, each all"),
        ("all=", "7/min edge/all=*, each all"),
        ("deep=x within=in-out", "8/min edge/deep=x/within=in*out, each within"),
        ("deep=x within=inou", "unknown"),
        ("order=abc", "12/min edge/order=abc"),
        ("order=abd", "10/min edge/order=a*, each order"),
        ("order=ab*", "11/min edge/order=ab*, each order"),
        ("order=b", "9/min edge/order, each order"),
        ("back=a1 to=one", "13/min edge/back=a*/to=one, each back"),
        ("back=a1 to=two", "unknown"),
        ("back=b1 to=two", "14/min edge/back/to, each back to"),
    ],
);

const OF_METRICS: Case = (
    &["
domain: edge
descriptors:
- key: outer
  detailed_metric: true
  rate_limit: {unit: minute, requests_per_unit: 100}
  descriptors:
  - {key: inner, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 5}}
- {key: user, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 500}}
- {key: user, value: root, rate_limit: {unit: minute, requests_per_unit: 501}}
- key: device
  detailed_metric: true
  rate_limit: {unit: minute, requests_per_unit: 5000}
  descriptors:
  - {key: app, detailed_metric: true}
  - {key: app, value: mail, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 6}}
- key: route
  value_to_metric: true
  descriptors:
  - key: method
    value: GET
    value_to_metric: true
    descriptors:
    - {key: subject, rate_limit: {unit: minute, requests_per_unit: 60}}
  - key: method
    value_to_metric: true
    descriptors:
    - {key: subject, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 30}}
  - key: method
    value: P*
    value_to_metric: true
    descriptors:
    - {key: subject, rate_limit: {unit: minute, requests_per_unit: 40}}
"],
    &[
        ("outer=1", "100/min edge/outer, each outer"),
        ("outer=1 inner=2", "5/min edge/outer/inner, each outer inner"),
        ("user=x", "500/min edge/user, each user"),
        ("user=root", "501/min edge/user=root"),
        ("device=7", "5000/min edge/device, each device"),
        ("device=7 app=mail", "6/min edge/device/app=mail, each device"),
        ("device=7 app=maps", "no limit"),
        (
            "route=r method=GET subject=s",
            "60/min edge/route/method=GET/subject, each route subject",
        ),
        (
            "route=r method=PUT subject=s",
            "40/min edge/route/method=P*/subject, each route method subject",
        ),
        (
            "route=r method=DELETE subject=s",
            "30/min edge/route/method/subject, each route method subject",
        ),
        ("route= method= subject=s", "30/min edge/route/method/subject, each route method subject"),
        ("route=r method=GET", "no limit"),
    ],
);

const OF_SHARED_THRESHOLDS: Case = (
    &["
domain: edge
descriptors:
- {key: file, value: img/*, share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: file, value: img/logo, rate_limit: {unit: minute, requests_per_unit: 2}}
- {key: file, value: doc/*, share_threshold: false, rate_limit: {unit: minute, requests_per_unit: 3}}
- key: in
  value: one
  descriptors:
  - key: file
    value: img/*
    share_threshold: true
    rate_limit: {unit: minute, requests_per_unit: 4}
- key: file
  value: top/*
  share_threshold: true
  descriptors:
  - {key: file, value: sub/*, share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 5}}
- key: route
  value: api/*
  share_threshold: true
  value_to_metric: true
  descriptors:
  - {key: method, rate_limit: {unit: minute, requests_per_unit: 6}}
- key: service
  value: svc/*
  share_threshold: true
  descriptors:
  - {key: call, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 7}}
- key: path
  value: p/*
  share_threshold: true
  descriptors:
  - key: file
    value: f/*
    descriptors:
    - {key: kind, rate_limit: {unit: minute, requests_per_unit: 8}}
- {key: ends, value: '*.png', share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 9}}
- {key: within, value: /a*z, share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 10}}
- key: several
  value: a*b*c
  share_threshold: true
  value_to_metric: true
  rate_limit: {unit: minute, requests_per_unit: 11}
- key: tenant
  value: t*prod
  share_threshold: true
  descriptors:
  - {key: file, value: f*v2, share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 12}}
"],
    &[
        ("file=img/a", "1/min edge/file=img%2F*"),
        ("file=img/b", "1/min edge/file=img%2F*"),
        ("file=img/*", "1/min edge/file=img%2F*"),
        ("file=img/logo", "2/min edge/file=img%2Flogo"),
        ("file=doc/a", "3/min edge/file=doc%2F*, each file"),
        ("in=one file=img/a", "4/min edge/in=one/file=img%2F*"),
        ("file=top/1 file=sub/1", "5/min edge/file=top%2F*/file=sub%2F*"),
        ("route=api/v1 method=GET", "6/min edge/route=api%2F*/method, each method"),
        ("service=svc/1 call=get", "7/min edge/service=svc%2F*/call, each call"),
        ("path=p/1 file=f/1 kind=k", "8/min edge/path=p%2F*/file=f%2F*/kind, each file kind"),
        ("ends=a.png", "9/min edge/ends=*.png"),
        ("within=/a/z", "10/min edge/within=%2Fa*z"),
        ("within=/az", "10/min edge/within=%2Fa*z"),
        ("within=/a/y", "unknown"),
        ("several=a1b2c", "11/min edge/several=a*b*c"),
        ("several=a1c", "unknown"),
        ("tenant=t1prod file=f1v2", "12/min edge/tenant=t*prod/file=f*v2"),
        ("tenant=t2prod file=f2v2", "12/min edge/tenant=t*prod/file=f*v2"),
    ],
);

/// What files say of which keys, whichever comes first.
const OF_MERGED_TABLES: Case = (
    &["
domain: edge
descriptors:
- &base
  key: base
  value: v
  rate_limit: &ten {unit: second, requests_per_unit: 10, name: ten}
- {<<: *base, key: same}
- {key: before, <<: *base, value: w}
- {<<: *base, key: hours, rate_limit: {unit: hour}}
- {<<: *base, key: any, value: }
- {<<: *base, key: none, rate_limit: }
- {key: first, rate_limit: {<<: [{unit: day}, *ten]}}
"],
    &[
        ("base=w", "10/s edge/base=w \"ten\""),
        ("base=v", "10/s edge/base=v \"ten\""),
        ("before=w", "unknown"),
        ("same=v", "10/s edge/same=v \"ten\""),
        ("hours=v", "10/h edge/hours=v \"ten\""),
        ("any=x", "10/s edge/any \"ten\", each any"),
        ("none=v", "no limit"),
        ("first=x", "10/day edge/first \"ten\", each first"),
    ],
);

#[test]
fn descriptors_meet_what_files_say() {
    for (files, asked) in [
        OF_LEVELS,
        OF_SEVERAL_FILES,
        OF_SHADOWS,
        OF_WILDCARDS,
        OF_METRICS,
        OF_SHARED_THRESHOLDS,
        OF_MERGED_TABLES,
    ] {
        let gate = gate(files);
        for (asked, expected) in asked {
            assert_eq!(met(&gate, asked), *expected, "{asked}\n{}", files.join("---\n"));
        }
    }
}

fn gate(files: &[&str]) -> Gate {
    let folder = tempfile::tempdir().unwrap();
    for (number, text) in files.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{number}.yaml")), text).unwrap();
    }
    let folder = load(folder.path(), AlgorithmKind::FixedWindow).unwrap();
    let builder = folder.domains.into_iter().fold(Policy::builder(), PolicyBuilder::domain);
    Gate::new(builder.build().unwrap()).unwrap()
}

fn met(gate: &Gate, asked: &str) -> String {
    let (domain, entries) = asked.split_once(':').unwrap_or(("edge", asked));
    let entries: Vec<_> =
        entries.split_ascii_whitespace().map(|entry| entry.split_once('=').unwrap()).collect();
    let look = Descriptor { hits: 0, ..Descriptor::new(&entries) };
    let outcome = gate
        .try_decide(&Descriptors { domain, descriptors: &[look] }, |it| {
            it.map(DescriptorOutcome::take)
        })
        .unwrap()
        .unwrap();
    let state = outcome.descriptors().next().unwrap();
    match state.kind() {
        DescriptorKind::Unknown => return "unknown".to_owned(),
        DescriptorKind::Known => return "no limit".to_owned(),
        DescriptorKind::Unlimited => return "unlimited".to_owned(),
        DescriptorKind::Limited | DescriptorKind::Replaced => {}
    }
    let limit = state.limits().next().unwrap();
    let mode = if limit.mode() == Mode::Shadow { "shadow " } else { "" };
    let quota = match limit.is_closed() {
        true => "closed".to_owned(),
        false => {
            let (amount, period) = (limit.decision().limit(), limit.decision().window().unwrap());
            Quota::per(amount, period).build().unwrap().to_string()
        }
    };
    let shown = limit.shown_name().map(|name| format!(" {name:?}")).unwrap_or_default();
    let counted = limit.counted().to_string();
    let keys = counted.split(", ").filter_map(|part| part.strip_prefix("descriptor:"));
    let keys: Vec<_> = keys.filter_map(|part| Some(part.split_once('=')?.0)).collect();
    let each = if keys.is_empty() { String::new() } else { format!(", each {}", keys.join(" ")) };
    format!("{mode}{quota} {}{shown}{each}", limit.name())
}
