// Changes the view: which node has the whole width, which end is up, and how siblings are ordered.
// SPDX-License-Identifier: MIT

function changeView(change) {
  paint(() => {
    change();
    byId('unzoom').classList.toggle('hidden', view.zoomed === 0);
    byId('invert').setAttribute('aria-pressed', view.inverted);
    byId('heavy').setAttribute('aria-pressed', view.heavy);
    showMatched();
  });
}

function zoom(node) {
  changeView(() => { view.zoomed = view.tree.isGap(node) ? view.tree.parent[node] : node; });
  saveAddress();
}

function toggleInverted() {
  changeView(() => { view.inverted = !view.inverted; });
  saveAddress();
}

function toggleHeavy() {
  changeView(() => setOrder(!view.heavy));
  saveAddress();
}
