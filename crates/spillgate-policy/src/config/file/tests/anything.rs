use proptest::prelude::*;

use super::super::decode;
use super::COMPLETE;

/// The complete example with some parts taken out, doubled or replaced.
fn mutated() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[\\[\\]{}=\"',.#\n 0-9a-z\u{80}-\u{ffff}-]{0,6}",
        (0..COMPLETE.len(), 0..60_usize).prop_map(|(start, length)| {
            let end = (start + length).min(COMPLETE.len());
            COMPLETE[start..end].to_owned()
        }),
    ];
    let cut = (any::<prop::sample::Index>(), 0..20_usize, part);
    prop::collection::vec(cut, 1..5).prop_map(|cuts| {
        let mut text: Vec<char> = COMPLETE.chars().collect();
        for (start, length, part) in cuts {
            let start = start.index(text.len() + 1);
            let end = (start + length).min(text.len());
            text.splice(start..end, part.chars());
        }
        text.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(spillgate_testing::strategy::cases(5_000))]

    #[test]
    fn any_text_is_decoded_and_its_problems_are_inside_it_in_order(
        text in prop_oneof![3 => mutated(), 1 => any::<String>(), 1 => "[\\[\\]{}=\"a.,\n0-9-]{0,40}"]
    ) {
        let (_, problems) = decode(&text, None);
        let places: Vec<_> = problems
            .iter()
            .map(|problem| problem.place().map(|place| (place.line, place.column)).unwrap())
            .collect();
        prop_assert!(places.is_sorted(), "{:?}", places);
        for (line, column) in places {
            let line = text.split('\n').nth(line - 1).unwrap();
            prop_assert!(column <= line.chars().count() + 1);
        }
    }
}
