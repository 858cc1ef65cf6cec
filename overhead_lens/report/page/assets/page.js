"use strict";
/* Draws each icicle when it comes into sight; searches it, zooms it, walks it with the keyboard. */
(() => {
  const { trees, texts } = JSON.parse(document.getElementById("icicles").textContent);
  const LEVEL_PX = 20;

  function grow(figure) {
    const [tree, callers] = trees[figure.dataset.icicle];
    const [place, input, hide, upside, output, button, caption] = [
      ".icicle", "input[type=search]", "[name=hide]", "[name=callers]", "output", "button", "figcaption",
    ].map((name) => figure.querySelector(name));
    let shown, framework, below, left, tiles, at, level;
    let matches = null;

    /** Shows a tree from its root on. Parents stand before their children, the widest child leftmost. */
    function plant(columns) {
      shown = { ...columns, names: columns.names.map((place) => texts[place]) };
      framework = new Set(shown.framework);
      below = shown.names.map(() => []);
      shown.parents.forEach((parent, node) => { if (parent >= 0) below[parent].push(node); });
      below.forEach((nodes) => nodes.sort((one, other) => shown.sizes[other] - shown.sizes[one]));
      left = shown.names.map(() => 0);
      below.forEach((nodes, node) => {
        let edge = left[node];
        for (const child of nodes) { left[child] = edge; edge += shown.sizes[child]; }
      });
      tiles = shown.names.map((name, node) => {
        const tile = document.createElement("div");
        tile.className = "tile";
        tile.dataset.node = node;
        tile.textContent = name;
        [tile.style.background, tile.style.color] = [texts[shown.inks[node]], texts[shown.letters[node]]];
        return tile;
      });
      place.replaceChildren(...tiles);
      at = 0;
      zoom(0);
    }

    const isHidden = (node) => Boolean(hide?.checked) && framework.has(node);

    /** Lays out the tiles so that a frame is as wide as the chart; its callers stand above it. */
    function zoom(node) {
      level = node;
      place.dataset.level = node;
      button.hidden = node === 0;
      const [start, whole] = [left[node], shown.sizes[node]];
      const depths = [];
      tiles.forEach((tile, each) => {
        const [from, to] = [left[each] - start, left[each] + shown.sizes[each] - start];
        depths[each] = (shown.parents[each] < 0 ? -1 : depths[shown.parents[each]]) + !isHidden(each);
        tile.hidden = isHidden(each) || from >= whole || to <= 0;
        tile.style.left = `${(100 * Math.max(0, from)) / whole}%`;
        tile.style.width = `${(100 * (Math.min(whole, to) - Math.max(0, from))) / whole}%`;
        tile.style.top = `${LEVEL_PX * depths[each]}px`;
      });
      const deepest = Math.max(...depths.filter((_, each) => !tiles[each].hidden));
      place.style.height = `${LEVEL_PX * (deepest + 1)}px`;
      search();
    }

    function mark() {
      tiles.forEach((tile, node) => {
        tile.classList.toggle("at", node === at && document.activeElement === place);
        tile.classList.toggle("found", matches !== null && matches.has(node));
        tile.classList.toggle("other", matches !== null && !matches.has(node));
      });
    }

    function describe(node) {
      const list = document.createElement("dl");
      const pairs = [["frame", shown.names[node]], ...shown.fields.map((name, field) => [name, texts[shown.values[node][field]]])];
      for (const [name, value] of pairs) {
        if (!value) continue;
        list.appendChild(document.createElement("dt")).textContent = name;
        list.appendChild(document.createElement("dd")).textContent = value;
      }
      caption.replaceChildren(list);
    }

    function go(node) {
      if (node === undefined || node < 0) return;
      at = node;
      describe(node);
      mark();
    }

    function search() {
      const words = input.value.trim().toLowerCase();
      matches = null;
      output.textContent = "";
      if (words) {
        const { names, parents, sizes } = shown;
        // Of what is shown; the root is the whole, not a frame, and "3 smaller frames" is not a frame's name.
        const isFrame = (name, node) => node && !/^[\d,]+ smaller frames?$/.test(name);
        const isFound = (name, node) => isFrame(name, node) && !tiles[node].hidden && name.toLowerCase().includes(words);
        matches = new Set(names.flatMap((name, node) => (isFound(name, node) ? [node] : [])));
        // A frame below another that was found is in its width already.
        let width = 0;
        for (const node of matches) {
          let caller = parents[node];
          while (caller >= 0 && !matches.has(caller)) caller = parents[caller];
          if (caller < 0) width += Math.min(sizes[node], sizes[level]);
        }
        output.textContent = matches.size
          ? `${matches.size} frame${matches.size > 1 ? "s" : ""}, ${((100 * width) / sizes[level]).toFixed(1)} % of the width`
          : "no frame of that name is shown";
      }
      mark();
    }

    // Over hidden frames as if they were not there.
    const up = (node) => { do node = shown.parents[node]; while (node >= 0 && isHidden(node)); return node; };
    const down = (node) => below[node].flatMap((child) => (isHidden(child) ? down(child) : [child]));
    const beside = (step) => { const row = up(at) < 0 ? [at] : down(up(at)); return row[row.indexOf(at) + step]; };
    const moves = {
      ArrowDown: () => go(down(at)[0]),
      ArrowUp: () => go(up(at)),
      ArrowLeft: () => go(beside(-1)),
      ArrowRight: () => go(beside(1)),
      Home: () => go(level),
      Enter: () => zoom(at),
      Escape: () => { const node = Math.max(0, up(level)); zoom(node); go(node); },
    };
    place.addEventListener("keydown", (event) => {
      if (!(event.key in moves)) return;
      event.preventDefault();
      moves[event.key]();
    });
    place.addEventListener("focus", mark);
    place.addEventListener("blur", mark);
    place.addEventListener("click", (event) => {
      if (event.target === place) return;
      const node = Number(event.target.dataset.node);
      zoom(node === level ? Math.max(0, up(node)) : node);
      go(node);
    });
    place.addEventListener("mouseover", (event) => { if (event.target !== place) describe(event.target.dataset.node); });
    place.addEventListener("mouseleave", () => describe(at));
    button.addEventListener("click", () => { zoom(0); go(0); place.focus(); });
    input.addEventListener("input", search);
    input.addEventListener("keydown", (event) => { if (event.key === "Escape") { input.value = ""; search(); } });
    hide?.addEventListener("change", () => { if (isHidden(level)) zoom(0); else zoom(level); });
    upside?.addEventListener("change", () => plant(upside.checked ? callers : tree));
    plant(tree);
    figure.dataset.ready = "true";
  }

  const watch = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting) continue;
      watch.unobserve(target);
      grow(target);
    }
  }, { rootMargin: "300px" });
  const figures = [...document.querySelectorAll("[data-icicle]")];
  figures.forEach((figure) => watch.observe(figure));
  addEventListener("beforeprint", () => {
    figures.filter((figure) => figure.closest("details[open]") && !figure.dataset.ready).forEach((figure) => {
      watch.unobserve(figure);
      grow(figure);
    });
  });
  document.documentElement.dataset.ready = "true";
})();
