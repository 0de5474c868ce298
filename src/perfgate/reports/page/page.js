"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const by = (id) => document.getElementById(id);

  for (const one of all(".scripted")) one.hidden = false;

  // The theme: what the system says, until somebody chooses; kept where the browser lets us.
  const themes = { "": "automatic", light: "light", dark: "dark" };
  const kept = {
    get() { try { return localStorage.getItem("perfgate-theme") || ""; } catch { return ""; } },
    set(name) { try { localStorage.setItem("perfgate-theme", name); } catch { /* not kept */ } },
  };
  let theme = "";
  const show = (name) => {
    theme = name in themes ? name : "";
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    by("theme").textContent = `Theme: ${themes[theme]}`;
  };
  show(kept.get());
  by("theme").addEventListener("click", () => {
    const names = Object.keys(themes);
    show(names[(names.indexOf(theme) + 1) % names.length]);
    kept.set(theme);
  });

  // The results: find, only one verdict, sort.
  const table = by("all-results");
  const rows = all("tbody tr", table);
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const filter = () => {
    const words = by("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = by("only").value;
    let shown = 0;
    rows.forEach((row, place) => {
      row.hidden = !((!verdict || row.dataset.v === verdict)
        && words.every((word) => texts[place].includes(word)));
      shown += row.hidden ? 0 : 1;
    });
    by("shown").textContent = `${shown} of ${rows.length} tests`;
  };
  by("find").addEventListener("input", filter);
  by("only").addEventListener("change", filter);
  by("filter").addEventListener("submit", (event) => event.preventDefault());
  by("filter").addEventListener("reset", () => setTimeout(filter));

  const heads = all("th[data-sort]", table);
  const cell = (row, column) => {
    let place = 0;
    for (const one of row.cells) {
      if (place + one.colSpan > column) return one;
      place += one.colSpan;
    }
    return row.cells[row.cells.length - 1];
  };
  const sortBy = (head, down) => {
    const column = head.cellIndex;
    const key = (row) => {
      const one = cell(row, column);
      return head.dataset.sort === "number" ? one.dataset.k : one.textContent;
    };
    const sign = down ? -1 : 1;
    const keyed = rows.map((row, place) => [key(row), place, row]);
    keyed.sort(([a, first], [b, second]) => {
      if (a === "" || b === "" || a === undefined || b === undefined) {
        return (!a) - (!b) || first - second; // what has no number stands last
      }
      const order = head.dataset.sort === "number"
        ? Number(a) - Number(b)
        : a.localeCompare(b, "en", { numeric: true });
      return sign * order || first - second;
    });
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...keyed.map((item) => item[2]));
  };
  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const first = head.dataset.first === "descending";
      sortBy(head, now ? now === "ascending" : first);
    });
  }
  heads[0].setAttribute("aria-sort", "ascending");

  // What a link leads to is opened, and everything for the printer.
  const open = () => {
    let one = location.hash.length > 1 ? by(location.hash.slice(1)) : null;
    if (!one) return;
    const target = one;
    for (one = target.closest("details"); one; one = one.parentElement.closest("details")) {
      one.open = true;
    }
    target.scrollIntoView();
    if (target.tabIndex === -1) target.focus({ preventScroll: true });
  };
  addEventListener("hashchange", open);
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
    closed = [];
  });
  for (const button of all("[data-all]")) {
    button.addEventListener("click", () => {
      for (const one of all("#scenarios > details")) one.open = Boolean(button.dataset.all);
    });
  }

  // Charts: the bundle is unpacked when the first of them comes into view, each drawn then.
  const bundle = by("chart-bundle");
  if (bundle) {
    const unpacked = (element) => {
      const bytes = Uint8Array.from(atob(element.textContent.trim()), (one) => one.charCodeAt(0));
      const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      return new Response(plain).text();
    };
    let loading = null;
    const load = () => {
      loading ??= (async () => {
        const specs = by("chart-specs");
        const packed = "packed" in specs.dataset;
        const script = document.createElement("script");
        script.textContent = await unpacked(bundle);
        document.head.append(script);
        return JSON.parse(packed ? await unpacked(specs) : specs.textContent);
      })();
      return loading;
    };
    const draw = async (figure) => {
      const place = figure.querySelector(".drawn");
      try {
        const specs = await load();
        const options = { renderer: "svg", actions: false, ast: true, tooltip: { theme: "custom" } };
        await vegaEmbed(place, specs[figure.id], options);
        const still = figure.querySelector(".static");
        if (still) still.hidden = true;
      } catch (error) {
        place.textContent = "";
        place.className = "drawn chart-fault";
        place.textContent = `The chart cannot be drawn here (${error.message}); its data is below.`;
      }
    };
    const watch = new IntersectionObserver((seen) => {
      for (const one of seen) {
        if (one.isIntersecting) {
          watch.unobserve(one.target);
          draw(one.target);
        }
      }
    }, { rootMargin: "200px" });
    for (const figure of all("figure.chart")) watch.observe(figure);
  }
  open();
})();
