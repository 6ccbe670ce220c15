// The crosshair of a chart: it follows the mouse, a finger or the arrow keys, and tells the values of all series there.
(() => {
  const LINES_MAX = 14;
  const NARROW_PX = 560;

  encore.Readout = class {
    constructor(chart) {
      this.chart = chart;
      this.hair = encore.element("div", { class: "hair", hidden: "" });
      this.box = encore.element("div", { class: "readout", hidden: "" });
      // What a screen reader says after a key.
      this.said = encore.element("p", { class: "unseen", "aria-live": "polite" });
      this.dots = chart.data.series.map(own => {
        const dot = encore.element("div", { class: "dot", hidden: "" });
        dot.style.borderColor = own.colour === "#000000" ? "var(--ink)" : (own.colour ?? "var(--ink)");
        return dot;
      });
      chart.u.over.append(this.hair, ...this.dots);
      chart.live.append(this.box, this.said);
      this.places = this.groups();
      this.at = null;
      this.listen();
    }

    // The places across, ascending, each with the points there: [series, index].
    groups() {
      const { data } = this.chart;
      if (data.kind === "heat") return data.columns.map(([from, to], column) => ({ x: (from + to) / 2, column, points: [] }));
      const groups = new Map();
      data.series.forEach((own, order) => own.x.forEach((x, i) => {
        if (own.y[i] === null && data.kind === "lines") return;
        if (!groups.has(x)) groups.set(x, { x, points: [] });
        groups.get(x).points.push([order, i]);
      }));
      return [...groups.values()].sort((a, b) => a.x - b.x);
    }

    listen() {
      const { over } = this.chart.u, { plot } = this.chart;
      const of = event => { const box = over.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
      over.addEventListener("mousemove", event => this.point(...of(event)));
      over.addEventListener("mouseleave", () => this.hide());
      let pressed = null;
      over.addEventListener("mousedown", event => { pressed = of(event); });
      over.addEventListener("click", event => {
        const [x, y] = of(event);
        if (pressed && Math.abs(x - pressed[0]) < 4) this.follow(this.nearest(x, y));
      });
      plot.addEventListener("blur", () => this.hide());
      plot.addEventListener("keydown", event => this.key(event));
    }

    // The places that the window shows and that have a point of a shown series.
    visible() {
      const { u, shown, data } = this.chart, { min, max } = u.scales.x;
      const isShown = place => data.kind === "heat" || place.points.some(([order]) => shown[order]);
      return this.places.filter(place => place.x >= min && place.x <= max && isShown(place));
    }

    point(left, top) {
      const { u } = this.chart;
      let best = null, distance = Infinity;
      for (const place of this.visible()) {
        const away = Math.abs(u.valToPos(place.x, "x") - left);
        if (away < distance) [best, distance] = [place, away];
      }
      this.top = top;
      this.show(best);
      u.over.style.cursor = this.linked(this.nearest(left, top)) ? "pointer" : "crosshair";
    }

    // The point nearest to a place in the window, as [series, index]; null if none is near.
    nearest(left, top) {
      const { u, data, shown } = this.chart, ratio = uPlot.pxRatio;
      if (data.kind === "heat" || !this.at) return null;
      if (data.kind === "bars") return this.bar(left);
      let best = null, distance = 14;
      data.series.forEach((own, order) => own.x.forEach((_, i) => {
        const at = own.marks && shown[order] ? this.chart.place(u, order, i) : null;
        if (!at) return;
        const away = Math.hypot((at[0] - u.bbox.left) / ratio - left, (at[1] - u.bbox.top) / ratio - top);
        if (away < distance && (own.links || !best)) [best, distance] = [[order, i], away];
      }));
      return best;
    }

    bar(left) {
      const { u, data, shown } = this.chart, orders = data.series.map((_, order) => order).filter(order => shown[order]);
      const slot = Math.abs(u.valToPos(1, "x") - u.valToPos(0, "x")), width = Math.min(slot / (orders.length + 1), 110);
      const place = Math.floor((left - u.valToPos(this.at.x, "x") + (width * orders.length) / 2) / width);
      return orders[place] === undefined ? null : [orders[place], this.at.x];
    }

    linked(point) {
      return point && this.chart.data.series[point[0]].links?.[point[1]];
    }

    follow(point) {
      const link = this.linked(point);
      if (link) location.href = link;
    }

    key(event) {
      const { u } = this.chart, places = this.visible(), now = places.indexOf(this.at);
      const to = { ArrowRight: now + 1, ArrowLeft: now < 0 ? places.length - 1 : now - 1, Home: 0, End: places.length - 1 }[event.key];
      if (to !== undefined) {
        this.show(places[Math.min(Math.max(to, 0), places.length - 1)] ?? null);
        this.said.textContent = this.box.innerText;
      } else if (event.key === "Escape") this.chart.zoom(...this.chart.full);
      else if (event.key === "+" || event.key === "-") {
        const left = this.at ? u.valToPos(this.at.x, "x") : u.over.clientWidth / 2, share = event.key === "+" ? 0.5 : 2;
        this.chart.zoom(u.posToVal(left * (1 - share), "x"), u.posToVal(left + (u.over.clientWidth - left) * share, "x"));
      } else if (event.key === "Enter" && this.at) this.follow(this.at.points.find(point => this.linked(point)));
      else return;
      event.preventDefault();
    }

    hide() {
      this.at = null;
      for (const element of [this.hair, this.box, ...this.dots]) element.hidden = true;
    }

    again() {
      if (this.at) this.show(this.visible().includes(this.at) ? this.at : null);
    }

    show(place) {
      if (!place) return this.hide();
      const { u, data } = this.chart, left = u.valToPos(place.x, "x");
      this.at = place;
      this.hair.hidden = this.box.hidden = false;
      this.hair.style.transform = `translateX(${Math.round(left)}px)`;
      const values = data.kind === "heat" ? this.heat(place) : this.values(place);
      const x = data.x.names ? data.x.names[place.x] : encore.withUnit(place.x, data.x.label);
      this.box.replaceChildren(encore.element("p", { class: "readout-at" }, x || data.title),
        encore.element("ul", {}, ...values.map(([colour, text]) => this.line(colour, text))));
      this.stand(left);
    }

    line(colour, text) {
      const sign = encore.element("span", { class: "swatch", "aria-hidden": "true" });
      sign.style.background = colour;
      return encore.element("li", {}, sign, text);
    }

    // The values of all shown series: the points here; of a line without one here, the nearest.
    values(place) {
      const { data, shown, u } = this.chart, out = [];
      data.series.forEach((own, order) => {
        const dot = this.dots[order];
        dot.hidden = true;
        if (!shown[order]) return;
        let here = place.points.filter(point => point[0] === order).map(point => point[1]);
        if (here.length === 0 && own.line && !data.x.names) here = this.beside(own, place.x);
        for (const i of here) {
          const label = (own.right ? data.right : data.y).label, value = own.y[i];
          const plain = `${own.label}: ${value === null ? "none" : encore.withUnit(value, label)}`;
          const tip = own.tips?.[i];
          out.push([own.colour === "#000000" ? "var(--ink)" : own.colour, data.kind === "bars" ? `${own.label}: ${tip}` : (tip ?? plain)]);
          const at = data.kind === "lines" && this.chart.place(u, order, i);
          if (!at) continue;
          dot.hidden = false;
          const ratio = uPlot.pxRatio;
          dot.style.transform = `translate(${(at[0] - u.bbox.left) / ratio}px, ${(at[1] - u.bbox.top) / ratio}px)`;
        }
      });
      if (out.length > LINES_MAX) out.splice(LINES_MAX - 1, out.length, ["transparent", `and ${out.length - LINES_MAX + 1} more`]);
      return out;
    }

    beside(own, x) {
      let best = null;
      own.x.forEach((other, i) => {
        if (own.y[i] !== null && (best === null || Math.abs(other - x) < Math.abs(own.x[best] - x))) best = i;
      });
      return best === null || x < own.x[0] || x > own.x[own.x.length - 1] ? [] : [best];
    }

    // The fullest cells of a column; first the one at the mouse.
    heat({ column }) {
      const { u, data } = this.chart, y = this.top === undefined ? null : u.posToVal(this.top, "y");
      const own = data.cells.filter(cell => cell[0] === column).sort((a, b) => b[3] - a[3]);
      const total = own.reduce((sum, cell) => sum + cell[3], 0);
      const at = own.find(([, low, high]) => y !== null && y >= low && y < high);
      const words = ([, low, high, count]) => `${encore.number(count)} of ${encore.number(low)} to ${encore.withUnit(high, data.y.label)}`;
      const line = cell => [`var(--heat-${cell[4]})`, words(cell)];
      const others = own.filter(cell => cell !== at).slice(0, 4);
      return [["transparent", `${encore.number(total)} operations`], ...(at ? [line(at)] : []), ...others.map(line)];
    }

    // Beside the hair, on the side with more room. A phone has it below the chart.
    stand(left) {
      const { u, live, plot } = this.chart, isNarrow = live.clientWidth < NARROW_PX;
      this.box.classList.toggle("is-below", isNarrow);
      if (isNarrow) return this.box.removeAttribute("style");
      const start = u.over.getBoundingClientRect().left - live.getBoundingClientRect().left;
      const isRight = left < u.over.clientWidth / 2;
      const x = isRight ? start + left + 14 : start + left - 14 - this.box.offsetWidth;
      this.box.style.transform = `translate(${Math.round(Math.max(x, 0))}px, ${plot.offsetTop + 14}px)`;
    }
  };
})();
