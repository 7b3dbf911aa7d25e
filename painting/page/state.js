// The state that all parts of the page's script share: the measures that the file carries as attributes, and
// the state of the view.
//
// The build joins the parts into one function, in the order of libcommon/meson.build.  They only define
// things; start.js starts the work.  The script inserts text only as textContent, and adds its handlers
// itself.  So a content security policy that allows only this script is enough.
// SPDX-License-Identifier: MIT

const SVG = 'http://www.w3.org/2000/svg';
const XHTML = 'http://www.w3.org/1999/xhtml';
const page = document.currentScript.closest('svg');
const layer = page.querySelector('#frames');

const given = layer.dataset;
const margin = Number(given.margin);
const inset = Number(given.inset);
const rowHeight = Number(given.row);
const givenLevels = Number(given.levels);  // rows of the original layout
const givenWidth = Number(given.width);  // of the root in it
const isGivenInverted = 'inverted' in given;
const minWidth = Math.max(0.02, Number(given.minwidth));
const factor = Number(given.factor);
const fontSize = parseFloat(getComputedStyle(layer).fontSize);
// The page fills the window if it is a document of its own.
const isAlone = page === document.documentElement || 'alone' in page.dataset;

// The view.  Nodes are indices into `tree`, which is replaced when the order or the steps change.
const view = {
  tree: null,
  generation: 0,  // counts the trees that were shown
  zoomed: 0,
  inverted: isGivenInverted,
  heavy: false,
  steps: [],  // changes of the tree, as derived.js describes them
  selected: 0,  // a name whose frames are outlined everywhere; 0: none
  levels: 1,  // rows of the current layout
  lastDepth: 0,  // of frames; deeper ones are summed up in the last row
  rowsLeftOut: 0,  // deeper rows, which are narrow in this view
  usable: givenWidth,  // width of the zoomed node, in pixels
  scheme: 'drawn',  // of colours
};

function svgElement(name, attributes = {}) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes)
    element.setAttribute(key, attributes[key]);
  return element;
}

// Makes an XHTML element.  Children are elements, or texts.
function html(name, attributes = {}, ...children) {
  const element = document.createElementNS(XHTML, name);
  for (const key in attributes)
    element.setAttribute(key, attributes[key]);
  element.append(...children);
  return element;
}
