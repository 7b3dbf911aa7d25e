// Changes the view: which node has the whole width, which end is up, how siblings are ordered, and by which
// steps the tree is made.
// SPDX-License-Identifier: MIT

// With `isNew`, the browser's Back returns to the view before the change.
function changeView(change, isNew = true) {
  paint(() => {
    change();
    tools.showState();
    showLegend();
    showPath();
    showMatched();
  });
  side.show();
  if (isNew)
    saveAddress(true);
}

function zoom(node) {
  const target = view.tree.isGap(node) ? view.tree.parent[node] : node;
  if (target !== view.zoomed)
    changeView(() => { view.zoomed = target; });
}

const toggleInverted = () => changeView(() => { view.inverted = !view.inverted; });
const toggleHeavy = () => changeView(() => setOrder(!view.heavy));

const hasStep = (kind) => view.steps.some((step) => step.kind === kind);

// Of some kinds a view has at most one step.
const SINGLE = [['callees', 'callers'], ['leaf'], ['recursion'], ['side']];

function addStep(step) {
  const rivals = SINGLE.find((kinds) => kinds.includes(step.kind)) || [];
  changeView(() => setSteps([...view.steps.filter((other) => !rivals.includes(other.kind)), step]));
}

function removeSteps(isRemoved) {
  changeView(() => setSteps(view.steps.filter((step) => !isRemoved(step))));
}

function toggleStep(kind) {
  if (hasStep(kind))
    removeSteps((step) => step.kind === kind);
  else
    addStep({ kind });
}

function resetView() {
  if (view.steps.length > 0)
    changeView(() => setSteps([]));
  else
    zoom(0);
}

const MOST_CRUMBS = 12;

function crumb(node) {
  const { tree } = view;
  const button = html('button', { type: 'button', class: 'crumb', title: tree.nameOf(node) }, shortened(shownName(node), 40));
  button.addEventListener('click', () => zoom(node));
  return button;
}

// Shows the callers of the zoomed frame, and the steps, each with a way back.
function showPath() {
  const { tree, zoomed } = view;
  const { path } = parts;
  path.replaceChildren();
  path.classList.toggle('hidden', zoomed === 0 && view.steps.length === 0);
  view.steps.forEach((step) => {
    const button = html('button', { type: 'button', class: 'step', title: 'Undo this' }, shortened(stepText(step), 50), ' \u00d7');
    button.addEventListener('click', () => removeSteps((other) => other === step));
    path.append(button);
  });
  const nodes = [];
  for (let node = zoomed; node !== 0; node = tree.parent[node])
    nodes.unshift(node);
  nodes.unshift(0);
  const left = nodes.length > MOST_CRUMBS ? nodes.length - MOST_CRUMBS : 0;
  nodes.forEach((node, i) => {
    if (i > 1 && i <= left)
      return;
    if (i > 0)
      path.append(html('span', { 'aria-hidden': 'true' }, i === left + 1 && left > 0 ? ' \u203a \u2026 \u203a ' : ' \u203a '));
    path.append(crumb(node));
  });
}
