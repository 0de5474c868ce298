// What scrolls sideways can be scrolled by keys, too. The theme wraps tables when it starts.
window.addEventListener("load", () => {
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    wide.tabIndex = 0;
  }
});
