// Starts the script as soon as the tree is read.  Until that time the page shows what the file drew.
// SPDX-License-Identifier: MIT

// Returns a function that runs `action` at most once per screen frame, however often it is called.
function soon(action) {
  let isPending = false;
  return () => {
    if (isPending)
      return;
    isPending = true;
    requestAnimationFrame(() => {
      isPending = false;
      action();
    });
  };
}

// Paper has no window: the page grows to its whole height, and all rows are drawn.
function listenToPrinter() {
  window.addEventListener('beforeprint', () => {
    page.classList.add('printed');
    if (isAlone)
      page.setAttribute('height', app.offsetHeight - scroller.offsetHeight + canvasHeight());
    holder.setAttribute('height', '100%');
    drawRows({ top: 0, bottom: canvasHeight() });
  });
  window.addEventListener('afterprint', () => {
    page.classList.remove('printed');
    paint(fitWindow);
  });
}

function start(tree) {
  if (tree.size === 0)
    return;
  orders.given = orders.byName = tree;
  showTree(tree);
  buildFrame();
  tools.build();
  theme.start();
  measure(Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)));
  takeOver();
  cursor.start();
  listenToPointer();
  page.classList.add('live');
  fitWindow();
  loadAddress();
  fitWindow();  // a scroll bar may have narrowed the graph
  paint(() => {});
  scroller.scrollTop = rowTop(view.tree.depth[view.zoomed]) - (view.inverted ? 0 : scroller.clientHeight - rowHeight);
  window.addEventListener('popstate', loadAddress);
  scroller.addEventListener('scroll', soon(paintScrolled), { passive: true });
  window.addEventListener('resize', soon(() => paint(fitWindow)));
  listenToPrinter();
}

embeddedTree().then((tree) => start(tree || drawnTree()));
