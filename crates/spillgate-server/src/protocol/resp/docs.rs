//! `COMMAND`: about the commands, for clients that route or complete them.

use super::codec::{Args, Writer};
use super::command::{SPECS, Spec};
use super::error::CommandError;

pub(super) fn run(args: Args<'_>, out: &mut Writer) -> Result<(), CommandError> {
    let names = args.skip(2);
    if args.len() == 1 {
        infos(names, out);
    } else if args.is(1, "COUNT") && names.is_empty() {
        out.integer(i64::try_from(SPECS.len()).unwrap_or(i64::MAX));
    } else if args.is(1, "LIST") && names.is_empty() {
        out.array(SPECS.len());
        SPECS.iter().for_each(|spec| out.bulk(spec.name));
    } else if args.is(1, "INFO") {
        infos(names, out);
    } else if args.is(1, "DOCS") {
        docs(names, out);
    } else {
        return Err(CommandError::unknown_subcommand("COMMAND", args.at(1)));
    }
    Ok(())
}

/// About the named commands, null for those that there are not; about all if none is named.
fn infos(names: Args<'_>, out: &mut Writer) {
    if names.is_empty() {
        out.array(SPECS.len());
        return SPECS.iter().for_each(|spec| info(spec, out));
    }
    out.array(names.len());
    for name in names.iter() {
        match Spec::find(name) {
            Some(spec) => info(spec, out),
            None => out.null(),
        }
    }
}

/// What Redis 7 tells of a command.
fn info(spec: &Spec, out: &mut Writer) {
    out.array(10);
    out.bulk(spec.name);
    out.integer(spec.redis_arity());
    words(spec.flags, out);
    // The first key, the last, and the step between them.
    let key = i64::try_from(spec.key).unwrap_or(0);
    for number in [key, key, i64::from(key > 0)] {
        out.integer(number);
    }
    // Access categories; tips, key specifications and subcommands.
    words(&[], out);
    (0..3).for_each(|_| out.array(0));
}

/// How the named commands are called, or all.
fn docs(names: Args<'_>, out: &mut Writer) {
    let is_asked = |spec: &&Spec| {
        let is_name = |name: &[u8]| spec.name.as_bytes().eq_ignore_ascii_case(name);
        names.is_empty() || names.iter().any(is_name)
    };
    let asked = || SPECS.iter().filter(is_asked);
    out.map(asked().count());
    for spec in asked() {
        out.bulk(spec.name);
        out.map(4);
        let pairs = ["summary", spec.summary, "since", "0.1.0", "group", spec.group, "arguments"];
        pairs.iter().for_each(|text| out.bulk(text));
        arguments(spec, out);
    }
}

fn arguments(spec: &Spec, out: &mut Writer) {
    out.array(pieces(spec.syntax).count());
    for piece in pieces(spec.syntax) {
        let optional = piece.strip_prefix('[').and_then(|piece| piece.strip_suffix(']'));
        let name = optional.unwrap_or(piece);
        out.map(if optional.is_some() { 3 } else { 2 });
        out.bulk("name");
        out.bulk(name);
        out.bulk("type");
        out.bulk(if name == "key" { "key" } else { "string" });
        if optional.is_some() {
            out.bulk("flags");
            words(&["optional"], out);
        }
    }
}

/// The words of a syntax; what is in brackets is one.
fn pieces(syntax: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let is_gap = move |character: char| {
        depth += i32::from(character == '[') - i32::from(character == ']');
        character == ' ' && depth == 0
    };
    syntax.split(is_gap).filter(|piece| !piece.is_empty())
}

fn words(words: &[&str], out: &mut Writer) {
    out.set(words.len());
    words.iter().for_each(|word| out.simple(word));
}
