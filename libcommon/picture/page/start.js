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
  orders.byName = tree;
  view.tree = tree;
  measure(Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)));
  takeOver();
  cursor.start();
  listenToPointer();
  listenToButtons();
  fitWindow();
  loadAddress();
  window.addEventListener('hashchange', loadAddress);
  window.addEventListener('scroll', soon(paintScrolled), { passive: true });
  window.addEventListener('resize', soon(() => paint(fitWindow)));
  page.classList.add('live');
}

embeddedTree().then((tree) => start(tree || drawnTree()));
