// Builds the tree from the frames that the file draws, if the file carries no tree.  It keeps their elements,
// with the links that these may hold.
// SPDX-License-Identifier: MIT

// Makes "name" of "name (1,234 samples, 12.34%)".  The name of the count may hold " (", too, so the loop
// counts these.
function nameInTitle(title) {
  let end = title.length;
  for (let i = given.countname.split(' (').length; i > 0; --i)
    end = title.lastIndexOf(' (', end - 1);
  return title.slice(0, end);
}

function colorNumber(text) {
  const channels = text.match(/\d+/g) || [];
  return channels.length === 3 ? channels.reduce((sum, channel) => sum * 256 + Number(channel), 0) : 0xdddddd;
}

function drawnTree() {
  const groups = Array.from(layer.querySelectorAll('g[data-at]'));
  const tree = new Tree(groups.length);
  tree.groups = groups;
  tree.titles = groups.map((group) => group.querySelector('title').textContent);
  tree.names = [''];
  tree.colors = [0xdddddd];
  const numbers = new Map();
  const open = [];
  groups.forEach((group, node) => {
    const [start, count, depth] = group.dataset.at.split(' ').map(Number);
    open.length = depth;
    tree.parent[node] = depth > 0 ? open[depth - 1] : 0;
    open.push(node);
    tree.start[node] = start;
    tree.total[node] = count;
    tree.depth[node] = depth;
    const name = 'name' in group.dataset ? group.dataset.name : nameInTitle(tree.titles[node]);
    const fill = group.querySelector('rect').getAttribute('fill');
    const key = fill + ' ' + name;
    if (!numbers.has(key)) {
      numbers.set(key, tree.names.length);
      tree.names.push(name);
      tree.colors.push(colorNumber(fill));
    }
    tree.name[node] = numbers.get(key);
  });
  const totals = tree.total.slice();
  tree.addUp();
  tree.total = totals;
  return tree;
}
