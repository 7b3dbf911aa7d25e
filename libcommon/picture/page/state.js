// The state that all parts of the page's script share: the elements of the document, the measures that the
// file carries as attributes, and the state of the view.
//
// The build joins the parts into one function, in the order of libcommon/meson.build.  They only define
// things; start.js starts the work.  The script inserts text only as textContent, and adds its handlers
// itself.  So a content security policy that allows only this script is enough.
// SPDX-License-Identifier: MIT

const SVG = 'http://www.w3.org/2000/svg';
const XHTML = 'http://www.w3.org/1999/xhtml';
const page = document.currentScript.closest('svg');
const byId = (id) => page.querySelector('#' + id);
const layer = byId('frames');
const details = byId('details');
const matched = byId('matched');
const bar = byId('bar');
const head = byId('head');
const hint = details.textContent;

const given = layer.dataset;
const margin = Number(given.margin);
const inset = Number(given.inset);
const rowHeight = Number(given.row);
const topMargin = Number(given.top);
const firstRow = Number(given.first);  // the upper edge of the root when it is at the top
const bottomMargin = Number(given.bottom);
const givenLevels = Number(given.levels);  // rows of the original layout
const givenWidth = Number(given.width);  // of the root in it
const givenHeight = topMargin + givenLevels * rowHeight + bottomMargin;
const isGivenInverted = 'inverted' in given;
const minWidth = Math.max(0.02, Number(given.minwidth));
const factor = Number(given.factor);
const fontSize = parseFloat(getComputedStyle(layer).fontSize);

// The view.  Nodes are indices into `tree`, which is replaced when the order changes.
const view = {
  tree: null,
  zoomed: 0,
  inverted: isGivenInverted,
  heavy: false,
  levels: givenLevels,  // rows of the current layout
  usable: givenWidth,  // width of the zoomed node, in pixels
};

function svgElement(name, attributes = {}) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes)
    element.setAttribute(key, attributes[key]);
  return element;
}
