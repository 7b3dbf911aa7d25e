// Chooses the colours of frames: by the scheme that the reader chose, by what the view says of a frame, and
// for light or dark paper.
// SPDX-License-Identifier: MIT

const GREY = 0xd6d6d6;
const MATCHES = [0x7b2fbf, 0x00798c, 0xa8440b, 0x27632a, 0x8a1c5c, 0x30518f];  // one for each search term
const SCHEMES = [
  ['drawn', 'as drawn'], ['name', 'by name'], ['library', 'by library'], ['safe', 'for colour-blind readers'],
];

function channelsOf(color) {
  return [color >> 16, color >> 8 & 255, color & 255];
}

function fromChannels([r, g, b]) {
  return Math.round(r) << 16 | Math.round(g) << 8 | Math.round(b);
}

// Mixes `part` of a colour with the paper.
function onPaper(color, part) {
  const paper = channelsOf(theme.isDark ? 0x16171b : 0xffffff);
  return fromChannels(channelsOf(color).map((channel, i) => channel * part + paper[i] * (1 - part)));
}

// FNV-1a, 32 bits.
function hashOf(text, start = 2166136261) {
  let hash = start;
  for (let i = 0; i < text.length; ++i)
    hash = Math.imul(hash ^ text.charCodeAt(i), 16777619) >>> 0;
  return hash;
}

function fromHue(hue, saturation, lightness) {
  const k = (n) => (n + hue * 12) % 12;
  const a = saturation * Math.min(lightness, 1 - lightness);
  return fromChannels([0, 8, 4].map((n) => 255 * (lightness - a * Math.max(-1, Math.min(k(n) - 3, 9 - k(n), 1)))));
}

// The colours of Okabe and Ito ("Color Universal Design", 2008), lighter, so that black text can be read.
const SAFE = [0xf0c566, 0x8fcdf0, 0x7fcbb2, 0xf5ee9a, 0x8db8dc, 0xeaa87a, 0xe3b2cd];

const schemeColors = { scheme: '', names: null, colors: [] };

function colorOfName(tree, name) {
  if (view.scheme === 'drawn' || name === 0)
    return tree.colors[name];
  if (schemeColors.scheme !== view.scheme || schemeColors.names !== tree.names)
    Object.assign(schemeColors, { scheme: view.scheme, names: tree.names, colors: [] });
  const { colors } = schemeColors;
  if (colors[name] === undefined) {
    const text = tree.names[name];
    const hash = hashOf(view.scheme === 'library' ? libraryOf(text) : text);
    colors[name] = /^\[unknown\]$|(^|\+)0x[0-9a-f]+$/.test(text) ? GREY :
      view.scheme === 'safe' ? SAFE[hash % SAFE.length] : fromHue(hash % 360 / 360, 0.55, 0.74);
  }
  return colors[name];
}

// Returns 0xRRGGBB.  Differences are grey at 0, red if the frame grew, blue if it shrank.  Frames that only
// divide stacks ("-", "--") keep their colour.
function colorOf(tree, node) {
  const color = node === 0 ? tree.colors[tree.name[0]] : colorOfName(tree, tree.name[node]);
  if (tree.isGap(node))
    return 0xc6c6c6;
  const { compared } = tree;
  if (compared !== null && compared.isDimmed(node))
    return 0xdcdcdc;
  const change = compared !== null ? compared.shownChange(node, tree.perOne) : tree.delta === null ? NaN : tree.delta[node];
  const delta = compared === null ? change : compared.shade(node, change, tree.largestDelta);
  const name = tree.names[tree.name[node]];
  if (Number.isNaN(delta) || name === '-' || name === '--')
    return color;
  const size = tree.largestDelta > 0 ? Math.min(1, Math.abs(delta) / tree.largestDelta) : 0;
  const pale = Math.trunc(210 * (1 - size));
  if (delta === 0)
    return 0xececec;
  if (view.scheme === 'safe')
    return delta > 0 ? 0xff0000 | (130 + pale * 0.55 & 255) << 8 | pale : pale << 16 | (100 + pale * 0.7 & 255) << 8 | 0xd0;
  return delta > 0 ? 0xff0000 | pale << 8 | pale : pale << 16 | pale << 8 | 0xff;
}

// Returns the colour as the view shows it: matches stand out, callers of the zoomed frame step back.
function paintOf(tree, node) {
  const match = matchOf(node);
  const color = match > 0 ? MATCHES[(match - 1) % MATCHES.length] : colorOf(tree, node);
  const isAbove = node < view.zoomed && isOnPath(node);
  return isAbove ? onPaper(color, 0.45) : color;
}

const fills = new Map();  // by colour: as text, whether white is easier to read on it, and whether dimmed text can be read

// Uses the relative luminance of WCAG 2.1; at 0.179, black and white text have the same contrast.
function fillOf(color) {
  if (!fills.has(color)) {
    const channels = channelsOf(color);
    const [r, g, b] = channels.map((channel) =>
      channel <= 10 ? channel / 255 / 12.92 : ((channel / 255 + 0.055) / 1.055) ** 2.4);
    const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    fills.set(color, {
      text: 'rgb(' + channels + ')',
      isDark: luminance < 0.179,
      allowsDimmed: luminance > 0.45 || luminance < 0.05,
    });
  }
  return fills.get(color);
}

const PREFERENCE = '(prefers-color-scheme: dark)';

// Light or dark paper.  The rules for dark paper are in a block whose condition the script can replace.
const theme = {
  isDark: false,
  chosen: null,  // by the reader; null: as the system prefers
  rule: null,

  start() {
    const sheets = [...document.styleSheets, ...(document.adoptedStyleSheets || [])];
    for (const sheet of sheets)
      for (const rule of sheet.cssRules)
        if (rule.media && rule.media.mediaText.includes('prefers-color-scheme'))
          this.rule = rule;
    window.matchMedia(PREFERENCE).addEventListener('change', () => paint(() => this.read()));
    this.read();
  },

  read() {
    this.isDark = getComputedStyle(app).getPropertyValue('--dark').trim() === '1';
  },

  // `isDark` null: as the reader prefers.
  use(isDark) {
    this.chosen = isDark;
    if (this.rule === null)
      return;
    this.rule.media.mediaText = isDark === null ? PREFERENCE : isDark ? 'all' : 'not all';
    paint(() => this.read());
  },

  toggle() {
    this.use(!this.isDark);
  },
};
