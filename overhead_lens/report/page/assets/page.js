"use strict";
/* Draws each chart when it comes into sight, in the colors of the page; makes icicles searchable, and walkable with the keyboard. */
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Set();
  const decoder = document.createElement("textarea");

  /** The text of a label, which is escaped for Plotly. Markup in a textarea stays text. */
  const text = (label) => { decoder.innerHTML = label; return decoder.value; };

  const escaped = (name) => name.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function theme(layout) {
    const axis = { gridcolor: color("--line"), zerolinecolor: color("--line"), linecolor: color("--line"), automargin: true };
    const themed = {
      ...layout,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12.5, color: color("--ink"), ...layout.font },
      hoverlabel: { align: "left", bgcolor: color("--soft"), bordercolor: color("--dim"), font: { color: color("--ink") }, namelength: -1 },
      dragmode: false,
    };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(name)) themed[name] = { ...axis, ...layout[name] };
    }
    return themed;
  }

  const LETTER_PX = 6.4;

  /** The labels of an icicle's frames, each cut to the width that it has when `level` is as wide as the chart. */
  function fitting(place, { labels, values }, level) {
    return labels.map((label, node) => {
      const room = Math.floor((place.clientWidth * values[node] / values[level] - 6) / LETTER_PX);
      if (room < 3) return "";
      const name = text(label);
      return name.length <= room ? label : escaped(name.slice(0, room - 1)) + "…";
    });
  }

  function draw(place) {
    const chart = charts[place.dataset.chart];
    const layout = { ...theme(chart.layout), height: chart.height };
    const isTree = place.closest(".tree") !== null;
    if (isTree) chart.data[0].text ??= fitting(place, chart.data[0], 0);
    const done = Plotly.react(place, chart.data, layout, { displayModeBar: false, responsive: true });
    if (drawn.has(place)) return;
    drawn.add(place);
    if (isTree) done.then(() => grow(place, chart));
  }

  /** Search, zoom and keys of an icicle. */
  function grow(place, chart) {
    const figure = place.closest(".tree");
    const [input, output, button, caption] = ["input", "output", "button", "figcaption"].map((name) => figure.querySelector(name));
    const { labels, parents, values, customdata } = chart.data[0];
    const names = labels.map(text);
    const fields = chart.layout.meta.fields;
    const above = parents.map((parent) => (parent === "" ? -1 : Number(parent)));
    const below = names.map(() => []);
    above.forEach((parent, node) => { if (parent >= 0) below[parent].push(node); });
    below.forEach((nodes) => nodes.sort((one, other) => values[other] - values[one]));
    let at = 0;
    let level = 0;
    let found = null;

    const nodeOf = (slice) => { const datum = slice.__data__; return datum ? Number(datum.data.data.id) : -1; };

    function mark() {
      for (const slice of place.querySelectorAll("g.slice")) {
        const node = nodeOf(slice);
        slice.classList.toggle("at", node === at && document.activeElement === place);
        slice.classList.toggle("found", found !== null && found.has(node));
        slice.classList.toggle("other", found !== null && !found.has(node));
      }
    }

    function tell(node) {
      const list = document.createElement("dl");
      const pairs = [["frame", names[node]], ...fields.map((name, field) => [name, text(customdata[node][field])])];
      for (const [name, value] of pairs) {
        if (!value) continue;
        list.appendChild(document.createElement("dt")).textContent = name;
        list.appendChild(document.createElement("dd")).textContent = value;
      }
      caption.replaceChildren(list);
    }

    function zoom(node) {
      level = node;
      button.hidden = level === 0;
      chart.data[0].text = fitting(place, chart.data[0], node);
      return Plotly.restyle(place, { level: [String(node)], text: [chart.data[0].text] }).then(mark);
    }

    function go(node) {
      if (node === undefined || node < 0) return;
      at = node;
      tell(node);
      mark();
    }

    function search() {
      const words = input.value.trim().toLowerCase();
      found = null;
      output.textContent = "";
      if (words) {
        found = new Set(names.flatMap((name, node) => (name.toLowerCase().includes(words) ? [node] : [])));
        // A frame below another that was found is in its width already.
        let width = 0;
        for (const node of found) {
          let caller = above[node];
          while (caller >= 0 && !found.has(caller)) caller = above[caller];
          if (caller < 0) width += values[node];
        }
        output.textContent = found.size
          ? `${found.size} frame${found.size > 1 ? "s" : ""}, ${((100 * width) / values[0]).toFixed(1)} % of the width`
          : "no frame of that name";
      }
      mark();
    }

    const beside = (step) => { const row = above[at] < 0 ? [at] : below[above[at]]; return row[row.indexOf(at) + step]; };
    const moves = {
      ArrowDown: () => go(below[at][0]),
      ArrowUp: () => { if (at !== level) go(above[at]); },
      ArrowLeft: () => go(beside(-1)),
      ArrowRight: () => go(beside(1)),
      Home: () => go(level),
      Enter: () => zoom(at),
      Escape: () => { at = Math.max(0, above[level]); zoom(at).then(() => tell(at)); },
    };
    place.addEventListener("keydown", (event) => {
      if (!(event.key in moves)) return;
      event.preventDefault();
      moves[event.key]();
    });
    place.addEventListener("focus", mark);
    place.addEventListener("blur", mark);
    // Plotly would glide; a jump serves those who asked for less motion, and everybody else as well.
    place.on("plotly_icicleclick", (event) => {
      const node = Number(event.points[0].id);
      zoom(node === level ? Math.max(0, above[node]) : node);
      go(node);
      return false;
    });
    place.on("plotly_afterplot", mark);
    button.addEventListener("click", () => { at = 0; zoom(0); place.focus(); });
    input.addEventListener("input", search);
    input.addEventListener("keydown", (event) => { if (event.key === "Escape") { input.value = ""; search(); } });
    place.dataset.ready = "true";
  }

  const places = [...document.querySelectorAll("[data-chart]")];
  const watch = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting) continue;
      watch.unobserve(target);
      draw(target);
    }
  }, { rootMargin: "300px" });
  places.forEach((place) => watch.observe(place));
  dark.addEventListener("change", () => drawn.forEach(draw));
  addEventListener("beforeprint", () => places.filter((place) => place.closest("details[open]")).forEach(draw));
  document.documentElement.dataset.ready = "true";
})();
