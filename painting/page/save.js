// Copies and saves what the page shows.
// SPDX-License-Identifier: MIT

function stackText(node) {
  const names = [];
  for (let at = node; at > 0; at = view.tree.parent[at])
    names.unshift(view.tree.nameOf(at));
  return names.join(';');
}

// Returns the zoomed part as folded text: whole stacks, with their own counts.
function foldedText() {
  const { tree, zoomed } = view;
  const lines = [];
  const path = zoomed === 0 ? [] : [stackText(tree.parent[zoomed])].filter((text) => text !== '');
  const own = ownColumns(tree).self;
  const names = [];
  for (let node = zoomed === 0 ? 1 : zoomed; node < tree.end[zoomed]; ++node) {
    names.length = tree.depth[node] - Math.max(1, tree.depth[zoomed]);
    names.push(tree.isGap(node) ? '[others]' : tree.nameOf(node));
    if (own[node] > 0)
      lines.push([...path, ...names].join(';') + ' ' + own[node] / tree.perOne);
  }
  return lines.join('\n') + '\n';
}

// Browsers give the clipboard to pages of secure origins only; the old command works in the others.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch (error) {
    const field = html('textarea', { 'aria-hidden': 'true' });
    field.value = text;
    app.append(field);
    field.select();
    const isDone = document.execCommand('copy');
    field.remove();
    if (!isDone) {
      tools.report('The browser did not allow copying');
      return;
    }
  }
  tools.report('Copied ' + grouped(text.length) + ' characters');
}

// Returns the view as a flame graph of its own: all its rows, with its title, without tools.
function picture() {
  const top = 3 * fontSize;
  const copied = svgElement('svg', {
    width: canvasWidth(), height: canvasHeight() + top, viewBox: '0 ' + -top + ' ' + canvasWidth() + ' ' + (canvasHeight() + top),
    class: 'flamegraph live', 'font-family': page.getAttribute('font-family'), 'font-size': fontSize,
  });
  const style = svgElement('style');
  const paper = svgElement('rect', { x: 0, y: -top, width: '100%', height: canvasHeight() + top, fill: getComputedStyle(app).backgroundColor });
  style.textContent = Array.from(page.querySelectorAll('style'), (element) => element.textContent).join('\n')
    .replace(PREFERENCE, theme.isDark ? 'all' : 'not all');
  const title = svgElement('text', { x: margin, y: -fontSize, 'font-weight': 600 });
  title.textContent = [parts.title.textContent, ...view.steps.map(stepText)].join(' \u00b7 ');
  drawRows({ top: 0, bottom: canvasHeight() });
  const frames = layer.cloneNode(true);
  for (const element of frames.querySelectorAll('.hidden, #hover, #cursor, #same, title'))
    element.remove();
  drawRows(inSight());
  copied.append(style, paper, title, frames);
  return copied;
}

function offer(blob, name) {
  const link = html('a', { download: name });
  link.href = URL.createObjectURL(blob);
  app.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

const pictureText = () => new XMLSerializer().serializeToString(picture());

function saveSvg() {
  offer(new Blob([pictureText()], { type: 'image/svg+xml' }), 'flamegraph-view.svg');
}

const SHARPNESS = 2;  // pixels of the PNG for each pixel of the page
const MOST_PIXELS = 16384;  // of a side: browsers refuse larger canvases

function savePng() {
  const image = new Image();
  const address = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(pictureText());
  image.onload = () => {
    const sharpness = Math.min(SHARPNESS, MOST_PIXELS / image.width, MOST_PIXELS / image.height);
    const surface = html('canvas', { width: Math.round(image.width * sharpness), height: Math.round(image.height * sharpness) });
    surface.getContext('2d').drawImage(image, 0, 0, surface.width, surface.height);
    surface.toBlob((blob) => offer(blob, 'flamegraph-view.png'), 'image/png');
  };
  image.onerror = () => tools.report('This browser could not draw the view as PNG; save it as SVG');
  image.src = address;
}

// On paper the whole view fills one page, in light colours.
const printing = {
  copied: null,

  start() {
    this.wasDark = theme.chosen;
    theme.use(false);
    this.copied = picture();
    this.copied.setAttribute('width', '100%');
    this.copied.setAttribute('height', '100%');
    holder.classList.add('hidden');
    page.append(this.copied);
    if (isAlone)
      page.setAttribute('height', '100%');
  },

  end() {
    this.copied.remove();
    holder.classList.remove('hidden');
    theme.use(this.wasDark);
    paint(fitWindow);
  },
};
