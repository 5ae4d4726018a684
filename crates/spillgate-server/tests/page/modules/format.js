const { count, duration, percent, rate, time, visible } = await import('/assets/format.js');

equal([count(1234567), rate(0.25), rate(12.34), rate(1234.5)], ['1,234,567', '0.3', '12.3', '1,235']);
equal([percent(0, 5), percent(1, 5), percent(1, 1e6), percent(999_999, 1e6), percent(5, 5), percent(1, 0)],
  ['0 %', '20 %', '< 0.1 %', '> 99.9 %', '100 %', '0 %']);
equal([null, 0, 1.2e-7, 9.4e-5, 0.0123, 0.9996, 1.44, 100, 3600].map(time),
  ['–', '0 s', '120 ns', '94 µs', '12.3 ms', '1 s', '1.44 s', '100 s', '1 h']);
equal([0, 59, 61, 3700, 90000, -5].map(duration), ['0 s', '59 s', '1 min', '1 h 1 min', '1 d 1 h', '0 s']);
equal(visible('<b>&"\u202eabc\u0000\n\u200b🙂é'), '<b>&"\\u{202e}abc\\u{0}\\u{a}\\u{200b}🙂é');
return checked;
