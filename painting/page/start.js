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

function start(tree) {
  if (tree.size === 0)
    return;
  orders.given = orders.byName = orders.counted = tree;
  showTree(tree);
  buildFrame();
  tools.build();
  timeMap.build();
  theme.start();
  measure(Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)));
  takeOver();
  cursor.start();
  listenToPointer();
  page.classList.add('live');
  fitWindow();
  loadAddress();
  fitWindow();  // a scroll bar may have narrowed the graph
  scrollToRoot();
  paint(() => {});
  window.addEventListener('popstate', loadAddress);
  scroller.addEventListener('scroll', soon(paintScrolled), { passive: true });
  window.addEventListener('resize', soon(() => paint(fitWindow)));
  window.addEventListener('beforeprint', () => printing.start());
  window.addEventListener('afterprint', () => printing.end());
}

async function readAll() {
  const tree = await embeddedTree();
  if (tree !== null)
    await readTimes(tree);
  return tree;
}

readAll().then((tree) => start(tree || drawnTree()));
