// Draws the report from the data that is embedded in the page. uPlot does the scales, axes, lines and cursors.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const short = (pod) => `${pod.name.split("-").slice(-2).join("-")} on ${pod.node}`;
  const sync = uPlot.sync("run");
  const charts = [];

  const axis = (extra) => ({
    stroke: () => colour("dim"),
    grid: { stroke: () => colour("line"), width: 1 },
    ticks: { stroke: () => colour("line"), width: 1 },
    ...extra,
  });

  // A line across every chart where we acted, so that cause and effect can be read off.
  const marks = (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = colour("ink");
    ctx.setLineDash([4, 4]);
    for (const mark of data.marks) {
      const x = Math.round(u.valToPos(mark.t, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  };

  const add = (id, options, values) => {
    const place = document.getElementById(id);
    const chart = new uPlot(
      {
        width: place.clientWidth || 320,
        cursor: { sync: { key: sync.key } },
        ...options,
        scales: { x: { time: false, range: [data.from, data.to] }, ...options.scales },
        hooks: { ...options.hooks, drawClear: [marks, ...(options.hooks?.drawClear ?? [])] },
      },
      values,
      place,
    );
    charts.push([chart, place]);
  };

  const line = (label, name, extra) => ({ label, stroke: () => colour(name), width: 1.5, points: { show: false }, ...extra });

  add("requests", {
    height: 220,
    axes: [axis({ label: "seconds" }), axis({ label: data.width > 1 ? `ended per ${data.width} s` : "ended per second" })],
    scales: { y: { range: (_, __, most) => [0, Math.max(5, most * 1.1)] } },
    series: [
      { label: "s" }, line("ok", "ok"), line("unfinished", "ink", { width: 2.5 }), line("cut", "cut", { width: 2.5 }),
      line("refused", "refused", { width: 2.5 }), line("refused on a kept connection", "kept", { width: 2.5 }),
      line("in flight", "dim", { dash: [2, 3] }),
    ],
  }, data.requests);

  add("latency", {
    height: 180,
    axes: [axis({ label: "seconds" }), axis({ label: "first token, ms" })],
    scales: { y: { range: (_, __, most) => [0, Math.max(10, most * 1.1)] } },
    series: [{ label: "s" }, line("p50", "ok"), line("p99", "refused")],
  }, data.latency);

  const BAND = 26;
  const pods = data.pods;
  const bands = (u) => {
    const { ctx } = u;
    const ratio = uPlot.pxRatio;
    ctx.save();
    pods.forEach((pod, row) => {
      const top = u.valToPos(row + 0.15, "y", true);
      const height = u.valToPos(row + 0.85, "y", true) - top;
      for (const [from, to, state] of pod.bands) {
        const left = Math.max(u.bbox.left, u.valToPos(from, "x", true));
        const right = Math.min(u.bbox.left + u.bbox.width, u.valToPos(to, "x", true));
        ctx.fillStyle = colour(state);
        if (right > left) ctx.fillRect(left, top, right - left, height);
      }
      ctx.strokeStyle = colour("ink");
      ctx.lineWidth = 2 * ratio;
      for (const t of pod.signals) {
        const x = u.valToPos(t, "x", true);
        ctx.beginPath();
        ctx.moveTo(x, top);
        ctx.lineTo(x, top + height);
        ctx.stroke();
      }
      ctx.fillStyle = colour("ink");
      // A triangle whose point is the moment: unlike another line, it is told from SIGTERM even where both coincide.
      for (const t of pod.exits) {
        const x = u.valToPos(t, "x", true);
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
        ctx.beginPath();
        ctx.moveTo(x, top + height / 2);
        ctx.lineTo(x + 7 * ratio, top);
        ctx.lineTo(x + 7 * ratio, top + height);
        ctx.fill();
      }
      ctx.font = `${11 * ratio}px system-ui, sans-serif`;
      ctx.textAlign = "left";
      ctx.textBaseline = "middle";
      ctx.fillText(short(pod), u.bbox.left + 4 * ratio, top + height / 2);
    });
    ctx.restore();
  };
  add("pods", {
    height: pods.length * BAND + 80,
    legend: { show: false },
    axes: [axis({ label: "seconds" }), axis({ label: " ", values: () => [], grid: { show: false }, ticks: { show: false } })],
    // Downwards: the oldest pod is on top.
    scales: { y: { range: [0, Math.max(1, pods.length)], dir: -1 } },
    series: [{ label: "s" }, { show: false }],
    hooks: { draw: [bands] },
  }, [[data.from, data.to], [0, 0]]);

  const fit = () => charts.forEach(([chart, place]) => chart.setSize({ width: place.clientWidth, height: chart.height }));
  addEventListener("resize", fit);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(([chart]) => chart.redraw()));
})();
