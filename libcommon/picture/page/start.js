// Takes the picture over once the tree is there; until then the file's own
// drawing shows.
// SPDX-License-Identifier: MIT

// Once a frame of the screen, however often it is asked for.
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
