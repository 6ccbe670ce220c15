// Draws the charts of a page again, on a canvas as wide as the page: with a crosshair that tells the values of all
// series, a legend that hides and shows, and a zoom. The picture in the page stays for readers without scripts and for
// print. The data comes from chart/data.rs.
(() => {
  if (typeof uPlot === "undefined") return;

  const FONT = "12px system-ui, sans-serif";
  const ASIDE = 0.04;
  // Circle, square, triangle, diamond, inverted triangle, plus: as frame.rs and lines.rs draw them.
  const SHAPES = [
    "M5 0A5 5 0 1 1-5 0A5 5 0 1 1 5 0Z", "M-5-5H5V5H-5Z", "M0-6L6 5H-6Z", "M0-6L6 0L0 6L-6 0Z", "M-6-5H6L0 6Z",
    "M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
  ];
  const RING = "M9 0A9 9 0 1 1-9 0A9 9 0 1 1 9 0Z";

  // Rows for uPlot, which wants one list of x. A series has a value in a row, null for a gap, or undefined.
  function aligned(series, aside) {
    const rows = new Map();
    series.forEach((own, order) => {
      const seen = new Map();
      own.x.forEach((x, i) => {
        const at = x + aside(order), nth = seen.get(at) ?? 0, key = `${at}|${nth}`;
        seen.set(at, nth + 1);
        if (!rows.has(key)) rows.set(key, { at, nth, points: [] });
        rows.get(key).points[order] = i;
      });
    });
    const sorted = [...rows.values()].sort((a, b) => a.at - b.at || a.nth - b.nth);
    const column = (own, order) =>
      sorted.map(({ points }) => (points[order] === undefined ? undefined : own.y[points[order]]));
    return [sorted.map(row => row.at), ...series.map(column)];
  }

  class Chart {
    constructor(box, data, shown) {
      for (const own of data.series ?? []) {
        own.label = encore.apart(own.label);
        own.tips = own.tips?.map(encore.apart);
      }
      for (const rule of data.rules) rule.label = encore.apart(rule.label);
      Object.assign(this, { box, data, isZoomed: false });
      this.isNamed = Array.isArray(data.x.names);
      if (data.kind === "heat") {
        const edges = data.columns.flat();
        data.series = [{ label: "operations", x: edges, y: edges.map(() => data.y.range[0]), bare: true }];
      }
      this.shown = data.series.map((own, order) => shown?.[order] ?? !own.off);
      this.full = this.isNamed ? [-0.5, data.x.names.length - 0.5] : data.x.range;
      this.build();
    }

    aside(order) {
      if (!this.isNamed || this.data.kind !== "lines") return 0;
      return (order - (this.data.series.length - 1) / 2) * Math.min(ASIDE, 0.5 / this.data.series.length);
    }

    build() {
      const { data, box } = this;
      this.reset = encore.element("button", { type: "button", class: "reset", hidden: "" }, "Reset zoom");
      this.reset.addEventListener("click", () => this.zoom(...this.full));
      this.hint = encore.element("span", { class: "soft hint" }, "Drag to zoom");
      const title = encore.element("p", { class: "chart-title" }, data.title);
      this.legend = encore.element("div", { class: "legend", role: "group", "aria-label": "Series" });
      const words = box.querySelector("desc")?.id;
      this.plot = encore.element("div", {
        class: "plot", tabindex: "0", role: "application", "aria-roledescription": "chart",
        "aria-label": `${data.title}. Arrow keys move along the points, + and - zoom, Escape resets.`,
        ...(words ? { "aria-describedby": words } : {}),
      });
      this.live = encore.element("div", { class: "live" },
        encore.element("div", { class: "chart-head" }, title, this.hint, this.reset), this.legend, this.plot);
      box.prepend(this.live);
      box.classList.add("is-live");
      if (data.kind === "heat") this.heatLegend();
      else data.series.forEach((own, order) => this.legend.append(this.key(own, order)));
      this.u = new uPlot(this.options(), aligned(data.series, order => this.aside(order)), this.plot);
      this.readout = new encore.Readout(this);
      this.touch();
      // In the next frame, because a chart that grows in this one is a change again.
      this.observer = new ResizeObserver(() => requestAnimationFrame(() => this.fit()));
      this.observer.observe(box);
    }

    // The button of a series in the legend.
    key(own, order) {
      const name = "http://www.w3.org/2000/svg";
      const sign = document.createElementNS(name, "svg"), path = document.createElementNS(name, "path");
      sign.setAttribute("viewBox", "-10 -10 20 20");
      sign.setAttribute("aria-hidden", "true");
      const first = own.signs?.[0] ?? "f", isLine = own.line && !own.marks;
      path.setAttribute("d", this.data.kind === "bars" ? SHAPES[1] : isLine ? "M-9 0H9" : first === "r" ? RING : SHAPES[own.look]);
      const colour = own.colour === "#000000" ? "var(--ink)" : own.colour;
      path.setAttribute("stroke", colour);
      path.setAttribute("fill", first === "f" && !isLine ? colour : "none");
      sign.append(path);
      const button = encore.element("button", { type: "button", class: "key", "aria-pressed": String(this.shown[order]) }, sign, own.label);
      button.addEventListener("click", () => {
        this.shown[order] = !this.shown[order];
        button.setAttribute("aria-pressed", String(this.shown[order]));
        this.u.setSeries(order + 1, { show: this.shown[order] });
        this.readout.again();
      });
      return button;
    }

    heatLegend() {
      const steps = Array.from({ length: this.data.steps }, (_, step) => {
        const cell = encore.element("span", { class: "heat-step" });
        cell.style.background = `var(--heat-${step})`;
        return cell;
      });
      const most = Math.max(...this.data.cells.map(cell => cell[3]));
      this.legend.append(encore.element("span", {}, "1 operation "), ...steps, encore.element("span", {}, ` ${encore.number(most)} operations`));
    }

    size() {
      const width = Math.max(this.plot.clientWidth || this.box.clientWidth, 240);
      return { width, height: width < 560 ? 320 : Math.round(Math.min(Math.max(width * 0.36, 320), 460)) };
    }

    fit() {
      const { width, height } = this.size();
      if (width !== this.u.width || height !== this.u.height) this.u.setSize({ width, height });
    }

    options() {
      const { data } = this, ink = () => encore.token("--ink"), soft = () => encore.token("--soft");
      const line = { stroke: () => encore.token("--grid"), width: 1 };
      const texts = (_, splits) => splits.map(value => (value == null ? "" : encore.number(value)));
      const across = { scale: "x", stroke: soft, font: FONT, grid: { show: false }, ticks: line, label: data.x.label, labelFont: FONT, labelSize: 20, values: texts };
      // There is no half a thread: whole numbers have whole ticks.
      const isWhole = data.kind === "lines" && data.series.every(own => own.x.every(Number.isInteger));
      if (isWhole && !data.x.log) across.incrs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7];
      if (this.isNamed) Object.assign(across, this.namedAxis(data.x.names));
      const upright = (scale, of, side) => ({
        scale, side, stroke: soft, font: FONT, grid: side === 1 ? { show: false } : line, ticks: line,
        label: of.label, labelFont: FONT, labelSize: 20, values: texts,
        size: (_, values) => 18 + 7 * Math.max(...(values ?? [""]).map(text => (text ?? "").length)),
      });
      const scale = of => ({ distr: of.log ? 3 : 1, range: (_, low, high) => this.range(of, low, high) });
      const options = {
        ...this.size(), legend: { show: false }, padding: [12, data.right ? 0 : 12, 0, 0],
        cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => this.zoom(...this.full) } },
        scales: { x: { time: false, distr: data.x.log ? 3 : 1, range: () => (this.isZoomed ? this.window : this.full) }, y: scale(data.y) },
        axes: [across, upright("y", data.y, 3)],
        series: [{}, ...data.series.map((own, order) => this.series(own, order))],
        hooks: {
          drawAxes: [u => this.below(u)], draw: [u => this.above(u)],
          setSelect: [u => { if (u.select.width > 4) this.select(u); }],
        },
      };
      if (data.right) {
        options.scales.r = scale(data.right);
        options.axes.push(upright("r", data.right, 1));
      }
      for (const axis of options.axes) axis.stroke = ink;
      return options;
    }

    series(own, order) {
      const isLine = this.data.kind === "lines" && own.line;
      return {
        label: own.label, scale: own.right ? "r" : "y", show: this.shown[order], width: 2, points: { show: false },
        stroke: () => encore.colour(own.colour ?? "#000000"), ...(isLine ? {} : { paths: () => null }),
      };
    }

    // The names below the axis; upright where they would touch.
    namedAxis(names) {
      const longest = Math.max(1, ...names.map(name => name.length)) * 7;
      const room = () => this.size().width / names.length - 90 / names.length;
      const isLevel = () => longest < room();
      return {
        splits: () => names.map((_, i) => i), filter: (_, splits) => splits, ticks: { show: false },
        values: (_, splits) => splits.map(i => { const name = names[i] ?? ""; return isLevel() || name.length < 24 ? name : `${name.slice(0, 23)}…`; }),
        rotate: () => (isLevel() ? 0 : -90), size: () => (isLevel() ? 30 : Math.min(longest, 168) + 16),
      };
    }

    // The whole chart has the ends of the picture. Zoomed or with hidden series, it uses its height for what it shows.
    range(of, low, high) {
      const isWhole = !this.isZoomed && this.data.series.every((own, order) => this.shown[order] === !own.off);
      if (isWhole || low === null || this.data.kind === "heat") return of.range;
      if (of.log) {
        const floor = low > 0 ? low : of.range[0];
        return [floor / 1.2, Math.max(high, floor) * 1.2];
      }
      const [from] = of.range, room = (high - (from > 0 ? low : from)) * 0.06 || Math.abs(high) * 0.06 || 1;
      return [from > 0 ? low - room : from, high + room];
    }

    select(u) {
      const low = u.posToVal(u.select.left, "x"), high = u.posToVal(u.select.left + u.select.width, "x");
      u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      this.zoom(low, high);
    }

    // uPlot selects with a mouse alone. A finger that moves sideways does the same; up and down, it scrolls the page.
    touch() {
      const { u } = this, { over } = u;
      let from = null;
      const at = event => {
        const { left, width } = over.getBoundingClientRect();
        return Math.min(Math.max(event.clientX - left, 0), width);
      };
      const show = (left, width) => u.setSelect({ left, width, top: 0, height: width && over.clientHeight }, false);
      const on = (kind, act) => over.addEventListener(kind, event => {
        if (event.pointerType === "touch" && event.isPrimary) act(event);
      });
      on("pointerdown", event => { from = at(event); });
      on("pointermove", event => {
        if (from !== null) show(Math.min(from, at(event)), Math.abs(at(event) - from));
      });
      on("pointerup", () => {
        from = null;
        if (u.select.width > 8) this.select(u);
        else show(0, 0);
      });
      on("pointercancel", () => {
        from = null;
        show(0, 0);
      });
    }

    // Leaves nothing that listens.
    free() {
      this.observer.disconnect();
      this.u.destroy();
      this.live.remove();
    }

    zoom(low, high) {
      const [first, last] = this.full;
      low = Math.max(low, first);
      high = Math.min(high, last);
      if (!(high > low)) return;
      this.window = [low, high];
      this.isZoomed = low > first || high < last;
      this.reset.hidden = !this.isZoomed;
      this.hint.hidden = this.isZoomed;
      this.live.classList.toggle("is-zoomed", this.isZoomed);
      this.u.setScale("x", { min: low, max: high });
      this.readout?.again();
    }

    // What is below the lines: bands around rules, cells, bars.
    below(u) {
      const { ctx, bbox } = u, { data } = this;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      for (const { band } of data.rules) {
        if (!band) continue;
        const top = u.valToPos(band[1], "y", true);
        ctx.globalAlpha = 0.15;
        ctx.fillStyle = data.band;
        ctx.fillRect(bbox.left, top, bbox.width, u.valToPos(band[0], "y", true) - top);
        ctx.globalAlpha = 1;
      }
      if (data.kind === "heat") this.cells(u);
      if (data.kind === "bars") this.bars(u);
      ctx.restore();
    }

    cells(u) {
      const colours = Array.from({ length: this.data.steps }, (_, step) => encore.token(`--heat-${step}`));
      for (const [column, low, high, , step] of this.data.cells) {
        const [from, to] = this.data.columns[column];
        const left = Math.round(u.valToPos(from, "x", true)), right = Math.round(u.valToPos(to, "x", true));
        const top = Math.round(u.valToPos(high, "y", true)), bottom = Math.round(u.valToPos(low, "y", true));
        u.ctx.fillStyle = colours[step];
        u.ctx.fillRect(left, top, Math.max(right - left, 1), Math.max(bottom - top, 1));
      }
    }

    // Half a bar of space at each side of a group, as in the picture.
    bars(u) {
      const { ctx, bbox } = u, { series } = this.data, ratio = uPlot.pxRatio;
      const orders = series.map((_, order) => order).filter(order => this.shown[order]);
      const slot = Math.abs(u.valToPos(1, "x", true) - u.valToPos(0, "x", true));
      const width = Math.min(slot / (orders.length + 1), 110 * ratio);
      ctx.font = `${12 * ratio}px system-ui, sans-serif`;
      orders.forEach((order, place) => series[order].x.forEach((group, i) => {
        const left = u.valToPos(group, "x", true) - (width * orders.length) / 2 + place * width, own = series[order];
        const value = own.y[i], bottom = bbox.top + bbox.height, middle = left + width / 2;
        let top = bottom;
        if (value > 0) {
          top = u.valToPos(value, "y", true);
          ctx.fillStyle = encore.colour(own.colour);
          ctx.fillRect(left + 1, top, width - 2, bottom - top);
        }
        const ends = own.intervals?.[i];
        ctx.strokeStyle = ctx.fillStyle = encore.token("--ink");
        if (ends) {
          const [low, high] = ends.map(end => u.valToPos(end, "y", true));
          ctx.lineWidth = 2 * ratio;
          ctx.beginPath();
          for (const [x0, y0, x1, y1] of [[0, low, 0, high], [-6, low, 6, low], [-6, high, 6, high]]) {
            ctx.moveTo(middle + x0 * ratio, y0);
            ctx.lineTo(middle + x1 * ratio, y1);
          }
          ctx.stroke();
          top = Math.min(top, high);
        }
        if (ctx.measureText(own.tips[i]).width < width) {
          ctx.textAlign = "center";
          ctx.textBaseline = "bottom";
          ctx.fillText(own.tips[i], middle, top - 4 * ratio);
        }
      }));
    }

    // What is above the lines: rules with their labels, markers, names.
    above(u) {
      const { ctx, bbox } = u, ratio = uPlot.pxRatio, taken = [];
      ctx.save();
      ctx.font = `${12 * ratio}px system-ui, sans-serif`;
      ctx.textBaseline = "middle";
      ctx.textAlign = "left";
      for (const rule of this.data.rules) {
        const y = u.valToPos(rule.y, "y", true);
        if (y < bbox.top - 1 || y > bbox.top + bbox.height + 1) continue;
        ctx.strokeStyle = ctx.fillStyle = encore.token("--ink");
        ctx.lineWidth = ratio;
        ctx.setLineDash([6 * ratio, 4 * ratio]);
        ctx.beginPath();
        ctx.moveTo(bbox.left, y);
        ctx.lineTo(bbox.left + bbox.width, y);
        ctx.stroke();
        ctx.setLineDash([]);
        const below = y + 16 * ratio > bbox.top + bbox.height ? -9 : 9;
        ctx.fillText(rule.label, bbox.left + 6 * ratio, y + below * ratio);
        const end = bbox.left + 6 * ratio + ctx.measureText(rule.label).width;
        taken.push([bbox.left, y - 2, bbox.left + bbox.width, y + 2], [bbox.left, y + below * ratio - 7 * ratio, end, y + below * ratio + 7 * ratio]);
      }
      if (this.data.kind === "lines") this.marks(u, taken);
      ctx.restore();
    }

    // Where a point is, in pixels of the canvas; null if it is not in the window.
    place(u, order, i) {
      const own = this.data.series[order], [x, y] = [own.x[i] + this.aside(order), own.y[i]];
      if (y === null || x < u.scales.x.min || x > u.scales.x.max) return null;
      return [u.valToPos(x, "x", true), u.valToPos(y, own.right ? "r" : "y", true)];
    }

    marks(u, taken) {
      const { ctx } = u, ratio = uPlot.pxRatio, named = [];
      this.data.series.forEach((own, order) => {
        if (!own.marks || !this.shown[order]) return;
        const colour = encore.colour(own.colour), shape = new Path2D(SHAPES[own.look]), ring = new Path2D(RING);
        own.x.forEach((_, i) => {
          const at = this.place(u, order, i), sign = own.signs?.[i] ?? "f";
          if (!at) return;
          ctx.save();
          ctx.translate(...at);
          ctx.scale(ratio, ratio);
          ctx.lineWidth = 2;
          ctx.strokeStyle = colour;
          ctx.fillStyle = sign === "f" ? colour : encore.token("--paper");
          if (sign !== "r") ctx.fill(shape);
          ctx.stroke(sign === "r" ? ring : shape);
          ctx.restore();
          taken.push([at[0] - 6 * ratio, at[1] - 6 * ratio, at[0] + 6 * ratio, at[1] + 6 * ratio]);
          if (own.names?.[i]) named.push([own.names[i], ...at]);
        });
      });
      ctx.font = `${11 * ratio}px system-ui, sans-serif`;
      ctx.fillStyle = encore.token("--ink");
      for (const [name, x, y] of named) this.name(u, taken, name, x, y);
    }

    // Writes a name where it hides no marker and no other name, if there is such a place.
    name({ ctx, bbox }, taken, name, x, y) {
      const ratio = uPlot.pxRatio, width = ctx.measureText(name).width, half = 6 * ratio, far = 8 * ratio;
      const places = [[x - width / 2, y - 14 * ratio], [x - width / 2, y + 14 * ratio], [x + far, y], [x - far - width, y],
        [x + far, y - 11 * ratio], [x - far - width, y - 11 * ratio], [x + far, y + 11 * ratio], [x - far - width, y + 11 * ratio]];
      const free = places.map(([left, middle]) => [left, middle - half, left + width, middle + half]).find(own =>
        own[0] >= bbox.left && own[2] <= bbox.left + bbox.width && own[3] <= bbox.top + bbox.height && own[1] >= bbox.top - far
        && taken.every(other => own[2] < other[0] || own[0] > other[2] || own[3] < other[1] || own[1] > other[3]));
      if (!free) return;
      ctx.fillText(name, free[0], free[1] + half);
      taken.push(free);
    }
  }

  const all = new Set();
  // Makes the charts below an element live, and frees those that have left the page.
  encore.charts = (root = document) => {
    for (const chart of all) {
      if (chart.box.isConnected) continue;
      all.delete(chart);
      chart.free();
    }
    for (const script of root.querySelectorAll("script.chart-data")) {
      if (script.chart) continue;
      script.chart = new Chart(script.parentElement, JSON.parse(script.textContent));
      all.add(script.chart);
    }
  };
  // Gives a live chart other data of the same series. What is hidden stays hidden, and a zoomed window stays where it is.
  encore.update = (script, data) => {
    const before = script.chart;
    script.textContent = JSON.stringify(data);
    if (!before) return encore.charts(script.parentElement);
    const { min, max } = before.u.scales.x, { isZoomed, shown } = before;
    all.delete(before);
    before.free();
    script.chart = new Chart(script.parentElement, data, shown);
    all.add(script.chart);
    if (isZoomed) script.chart.zoom(min, max);
  };
  const redraw = () => all.forEach(chart => chart.u.redraw(false, true));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("DOMContentLoaded", () => encore.charts());
})();
