//! What values mean that could mean several things.

use spillgate_policy::{Metadata, MetadataValue};

use super::{START, problems, quota, read};

#[test]
fn numbers_are_those_of_yaml_1_1() {
    for (written, expected) in
        [("010", "8/s"), ("0x10", "16/s"), ("0b10", "2/s"), ("0o17", "15/s"), ("+1_0", "10/s")]
    {
        let text = format!(
            "{START}- key: k\n  rate_limit: {{unit: second, requests_per_unit: {written}}}\n"
        );
        assert_eq!(quota(&read(&text).nodes[0]).0.unwrap().0, expected, "{written}");
    }
    for refused in ["08", "1.0", "1e3", "'5'", "five", "1:30", "-1", "-010"] {
        let text = format!(
            "{START}- key: k\n  rate_limit: {{unit: second, requests_per_unit: {refused}}}\n"
        );
        let message = problems(&text);
        let expected = "edge.yaml:4: requests_per_unit must be a whole number up to 4294967295";
        assert_eq!(message, [expected], "{refused}");
    }
}

#[test]
fn texts_are_as_they_are_written() {
    for (written, expected) in [
        ("010", Some("010")),
        ("0x10", Some("0x10")),
        ("1_000", Some("1_000")),
        ("1.50", Some("1.50")),
        ("yes", Some("yes")),
        ("2026-01-02", Some("2026-01-02")),
        ("!!str 5", Some("5")),
        ("!!int '5'", Some("5")),
        ("'~'", Some("~")),
        ("~", None),
        ("null", None),
        ("''", None),
    ] {
        let node = read(&format!("{START}- {{key: k, value: {written}}}\n")).nodes.remove(0);
        assert_eq!(node.value.as_deref(), expected, "{written}");
    }
}

#[test]
fn a_tag_that_would_change_a_value_is_refused() {
    for value in ["!!binary aGk=", "!own hi", "! hi", "!!set {a}", "!!omap []"] {
        let message = problems(&format!("{START}- key: k\n  value: {value}\n"));
        assert_eq!(message, ["edge.yaml:4: a tag has no meaning here; leave it out"], "{value}");
    }
    let tagged = "!!map\ndomain: !!str a\ndescriptors: !!seq\n- !!map {key: k}\n";
    assert_eq!(read(tagged).nodes.len(), 1);
}

#[test]
fn metadata_may_be_anything() {
    let domain = read(&format!(
        "{START}- key: k\n  rate_limit: {{unit: second, requests_per_unit: 1}}\n  \
         metadata: {{text: edge, quoted: '5', number: 010, half: .5, yes: on, no: ~, 7: seven,\n    \
         list: [1, [a]], table: {{key: {{unit: x}}}}}}\n\
         - {{key: empty, metadata: , rate_limit: {{unit: second, requests_per_unit: 1}}}}\n\
         - {{key: alone, metadata: {{a: 1}}}}\n"
    ));
    use MetadataValue::{Bool, List, Null, Number, Table, Text};
    let text = |text: &str| Text(text.to_owned());
    let table = |entries: &[(&str, MetadataValue)]| -> Metadata {
        entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    };
    let expected = table(&[
        ("text", text("edge")),
        ("quoted", text("5")),
        ("number", Number(8.0)),
        ("half", Number(0.5)),
        ("yes", Bool(true)),
        ("no", Null),
        ("7", text("seven")),
        ("list", List(vec![Number(1.0), List(vec![text("a")])])),
        ("table", Table(table(&[("key", Table(table(&[("unit", text("x"))])))]))),
    ]);
    assert_eq!(domain.nodes[0].limit.as_ref().unwrap().metadata, expected);
    assert_eq!(domain.nodes[1].limit.as_ref().unwrap().metadata, Metadata::new());
    assert!(domain.nodes[2].limit.is_none(), "there is nothing to tell it of");
}

#[test]
fn metadata_that_is_repeated_is_not_more_than_memory_holds() {
    let long = "x".repeat(100_000);
    let mut text =
        format!("{START}- {{key: k, metadata: &m {{long: &l {long}, list: [*l, *l]}}}}\n");
    for number in 0..1_000 {
        text.push_str(&format!("- {{key: k{number}, metadata: *m}}\n"));
    }
    let message = problems(&text);
    assert!(message[0].contains("there are more than 100000 descriptors"), "{message:?}");
}

#[test]
fn what_is_merged_does_not_grow_beyond_what_a_table_may_have() {
    let keys = |letter: char| -> String {
        (0..64).map(|number| format!("{letter}{number}: 1, ")).collect()
    };
    let (one, other) = (keys('a'), keys('b'));
    for text in [
        format!("a: {{{one}b: 1}}\n"),
        format!("a: [&a {{{one}}}, &b {{{other}}}, {{<<: [*a, *b]}}]\n"),
        format!(
            "a: [&a {{metadata: {{{one}}}}}, &b {{metadata: {{{other}}}}}, {{<<: [*a, *b]}}]\n"
        ),
    ] {
        assert_eq!(problems(&text), ["edge.yaml:1: a table has more than 64 keys"], "{text}");
    }
    assert_eq!(problems(&format!("a: {{{one}}}\n")).len(), 2, "which are told as unknown");
}
