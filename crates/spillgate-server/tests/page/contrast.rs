//! Whether text stands out from what is behind it, by the formula of WCAG 2.

use super::tab::Tab;

/// The texts in view that have less than 4.5:1, or 3:1 if they are large.
pub(crate) fn contrast(tab: &mut Tab) -> Vec<String> {
    let found = tab.eval(include_str!("contrast.js"));
    let found = found.as_array().unwrap().iter();
    found.map(|text| text.as_str().unwrap().to_owned()).collect()
}
