// Builds what surrounds the graph: title, tools, the path to the zoomed frame, the side panel, the details.
// It replaces the file's own title and details, which serve readers without a script.
// SPDX-License-Identifier: MIT

const fixedTexts = Object.fromEntries(['subtitle', 'details'].map((id) => {
  const element = page.querySelector('#' + id);
  return [id, element === null ? '' : element.textContent];
}));
fixedTexts.title = page.querySelector('#page-title').textContent;  // the one that is drawn may be cut

// Reads the legend that the file draws: pairs of a square and its meaning.  Squares are filled, framed or
// dashed.
function givenLegend() {
  const parts = Array.from(page.querySelectorAll('#legend > tspan'));
  const entries = [];
  for (let i = 0; i + 1 < parts.length; i += 2)
    entries.push({
      fill: parts[i].getAttribute('fill'), stroke: parts[i].getAttribute('stroke') || 'transparent',
      isDashed: parts[i].hasAttribute('stroke-dasharray'), text: parts[i + 1].textContent,
    });
  return entries;
}

function legendElement(entries) {
  const legend = html('div', { id: 'legend' });
  for (const { fill, stroke, isDashed, text } of entries) {
    const square = html('span', { class: 'mark' });
    square.style.background = fill === 'none' ? 'none' : fill;
    square.style.border = '1.5px ' + (isDashed ? 'dashed ' : 'solid ') + stroke;
    legend.append(html('span', {}, square, ' ' + text));
  }
  return legend;
}

// The legend of a difference that the reader chose.
const DIFFERENCE_LEGEND = [
  { fill: 'rgb(255,105,105)', stroke: 'transparent', isDashed: false, text: 'grew' },
  { fill: 'rgb(105,105,255)', stroke: 'transparent', isDashed: false, text: 'shrank' },
  { fill: 'none', stroke: '#b00020', isDashed: false, text: 'new' },
  { fill: 'none', stroke: '#1a3fb0', isDashed: true, text: 'gone' },
];

// Shows the legend of the colours in this view.
function showLegend() {
  const isChosen = view.tree.compared !== null && orders.given.compared === null;
  const legend = legendElement(isChosen ? DIFFERENCE_LEGEND : givenEntries);
  legend.classList.toggle('hidden', legend.firstChild === null);
  parts.legend.replaceWith(legend);
  parts.legend = legend;
}

const givenEntries = givenLegend();
const canvas = svgElement('svg', { id: 'canvas' });
const scroller = html('div', { id: 'scroller' });
const parts = {
  legend: legendElement(givenEntries),
  title: html('div', { id: 'title', role: 'heading', 'aria-level': 1, title: fixedTexts.title }, fixedTexts.title),
  subtitle: html('div', { id: 'subtitle' }, fixedTexts.subtitle),
  tools: html('div', { id: 'tools' }),
  times: html('div', { id: 'times', class: 'hidden' }),
  path: html('div', { id: 'path', class: 'hidden', role: 'navigation', 'aria-label': 'Path to the zoomed frame' }),
  side: html('div', { id: 'side', class: 'hidden' }),
  details: html('div', { id: 'details', class: 'hint' }, fixedTexts.details),
  matched: html('div', { id: 'matched', role: 'status' }),
};
const app = html('div', { id: 'app', role: 'main' });
const holder = svgElement('foreignObject', { id: 'holder', x: 0, y: 0, width: '100%', height: '100%' });

// A policy may refuse the file's style.  A style that the script makes is not subject to it (CSSOM,
// adoptedStyleSheets).
function adoptStyle() {
  const style = page.querySelector('style');
  if (style === null || style.sheet !== null || !('adoptedStyleSheets' in document))
    return;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style.textContent);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

function buildFrame() {
  adoptStyle();
  for (const element of page.querySelectorAll('#head, #bar, #legend, #subtitle, #backdrop'))
    element.remove();
  canvas.append(layer);
  scroller.append(canvas);
  const head = html('div', { id: 'head' }, html('div', { id: 'titles' }, parts.title), parts.tools);
  if (fixedTexts.subtitle !== '')
    head.firstChild.append(parts.subtitle);
  parts.legend.classList.toggle('hidden', givenEntries.length === 0);
  app.append(head, parts.times, parts.legend, parts.path, html('div', { id: 'middle' }, scroller, parts.side),
    html('div', { id: 'bar' }, parts.details, parts.matched));
  holder.append(app);
  page.append(holder);
  page.removeAttribute('viewBox');
}
