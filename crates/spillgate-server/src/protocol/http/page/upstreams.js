// The services behind `spillgate proxy`.

import { reasonOf } from './adaptive.js';
import { byId, cell, h, headings, setHidden, setText, who } from './dom.js';
import { count, rate, time, visible } from './format.js';
import { Rows } from './rows.js';

export class UpstreamsTable {
  constructor() {
    const body = h('div', { role: 'rowgroup', class: 'rows' });
    const head = headings(['url', 'Upstream'], ['state', 'Health'], ['number flight', 'In flight'],
      ['number p50', 'p50'], ['number p99', 'p99'], ['reason', 'Last change of its limit']);
    byId('upstreams-table').append(h('div', { role: 'rowgroup' }, head), body);
    this.rows = new Rows(body, (upstream) => new UpstreamRow(upstream));
  }

  render({ upstreams }) {
    setHidden(byId('upstreams'), upstreams.length === 0);
    this.rows.update(upstreams, ({ url }) => url);
  }
}

class UpstreamRow {
  constructor({ url }) {
    this.health = h('span', { class: 'health' });
    this.flight = h('span');
    this.most = h('span', { class: 'sub' });
    this.p50 = h('span');
    this.p99 = h('span');
    this.reason = h('span');
    this.node = h('div', { role: 'row', class: 'row', 'data-upstream': url },
      cell('url', 'Upstream', who(visible(url))), cell('state', 'Health', this.health),
      cell('number flight', 'In flight', this.flight, this.most), cell('number p50', 'p50', this.p50),
      cell('number p99', 'p99', this.p99), cell('reason', 'Last change', this.reason));
  }

  update({ healthy, in_flight: flight, p50, p99, limit, reason }) {
    setText(this.health, healthy ? '✓ healthy' : '✕ failing');
    this.health.classList.toggle('bad', !healthy);
    setText(this.flight, count(flight));
    setText(this.most, limit == null ? '' : `of ${rate(limit)}`);
    setText(this.p50, time(p50));
    setText(this.p99, time(p99));
    setText(this.reason, reason == null ? '–' : reasonOf(reason));
  }
}
