/** The complete style of all pages. They load no fonts, images or scripts. */
export const style = `
:root { color-scheme: light dark; --back: #f4f6f8; --card: #fff; --text: #15181d; --muted: #565f6b; --line: #dde1e7;
  --ok: #14703a; --ok-back: #e1f4e8; --ok-bar: #2c9f5d; --warn: #7c5100; --warn-back: #fdf0d2; --warn-bar: #e0a100;
  --fail: #a8141b; --fail-back: #fde6e6; --fail-bar: #d92d33; --none-bar: #d3d8df; --link: #0b57b0; }
@media (prefers-color-scheme: dark) {
  :root { --back: #0f1216; --card: #181c21; --text: #e8ebef; --muted: #a3acb8; --line: #2c323a;
    --ok: #7fdca2; --ok-back: #12301f; --ok-bar: #3fae6d; --warn: #f2c766; --warn-back: #35290b; --warn-bar: #d9a02a;
    --fail: #ffa3a3; --fail-back: #43191c; --fail-bar: #e5484d; --none-bar: #363d47; --link: #8fbfff; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 74rem; padding: 0 1.25rem 1.5rem; background: var(--back); color: var(--text);
  font: 1rem/1.45 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; overflow-wrap: anywhere; }
a { color: var(--link); }
h1 { margin: 0; font-size: 1.45rem; line-height: 1.25; text-wrap: balance; }
h1 .why { display: block; margin-top: .3rem; font-size: 1.02rem; font-weight: 400; line-height: 1.4; }
h2 { margin: 0; font-size: 1.15rem; }
h3 { margin: .6rem 0 .1rem; font-size: .95rem; }
h3 .when { margin-left: .4rem; font-weight: 400; }
p { margin: .35rem 0; }
code, pre { font-family: ui-monospace, 'Cascadia Mono', Menlo, Consolas, monospace; font-size: .85rem; }
pre { margin: .35rem 0; padding: .6rem .75rem; background: var(--back); border: 1px solid var(--line);
  border-radius: .4rem; white-space: pre-wrap; }
.muted { color: var(--muted); font-size: .9rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -99rem; top: .4rem; padding: .5rem .9rem; background: var(--card); z-index: 3; }
.drill { margin: .6rem 0; padding: .6rem 1rem; border-radius: .4rem; background: #7a1fa2; color: #fff; }
.drill b { margin-right: .6rem; font-size: 1.3rem; letter-spacing: .12em; }
.board .drill { font-size: 1.5rem; }
.skip:focus { left: .5rem; }

.bar { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; align-items: center; padding: .6rem 0; font-size: .95rem; }
.bar > a { padding: .25rem 0; text-decoration: none; }
.bar > a:hover, .bar > a[aria-current] { text-decoration: underline; text-underline-offset: .3em; }
.bar > a[aria-current] { color: var(--text); }
.bar b { font-size: 1.1rem; letter-spacing: .02em; }
.bar .who { margin-left: auto; display: flex; flex-wrap: wrap; gap: .3rem .8rem; align-items: center; color: var(--muted); }
header, section, footer { margin-bottom: 1rem; }
header { padding: 1rem 1.15rem; border-radius: .7rem; background: var(--card); border: 1px solid var(--line);
  border-left: .5rem solid var(--muted); }
header.ok { border-left-color: var(--ok-bar); background: var(--ok-back); }
header.warn, header.unchecked { border-left-color: var(--warn-bar); background: var(--warn-back); }
header.fail { border-left-color: var(--fail-bar); background: var(--fail-back); }
header .muted { color: var(--text); }
.counts { display: flex; flex-wrap: wrap; gap: .4rem; margin: .7rem 0 .2rem; padding: 0; list-style: none; }
.counts .state { background: var(--card); }
.counts a { color: inherit; text-decoration: none; }
.counts a:hover { text-decoration: underline; }

section { padding: .9rem 1.15rem; background: var(--card); border: 1px solid var(--line); border-radius: .7rem; }
section[id] { scroll-margin-top: 1rem; }
.top { display: flex; flex-wrap: wrap; gap: .35rem .75rem; align-items: center; }
.top > .state { margin-left: 0; }
.top .sum { color: var(--muted); font-size: .9rem; margin-right: auto; }
article .top { justify-content: space-between; }
.state { display: inline-block; padding: .05rem .6rem; border-radius: 1rem; font-size: .9rem; font-weight: 600;
  white-space: nowrap; color: var(--muted); background: var(--back); }
.state.ok { color: var(--ok); background: var(--ok-back); }
.state.warn, .state.unchecked { color: var(--warn); background: var(--warn-back); }
.state.fail { color: var(--fail); background: var(--fail-back); }
.run { display: flex; flex-wrap: wrap; gap: .35rem; align-items: center; margin: 0; color: var(--muted); font-size: .9rem; }
.causes { margin: .6rem 0; padding: 0; list-style: none; }
.causes li { padding: .3rem .6rem; border-left: .25rem solid var(--line); margin-bottom: .35rem; }
.causes .fail { border-color: var(--fail-bar); }
.causes .warn, .causes .unchecked { border-color: var(--warn-bar); }

.rows { margin: .5rem 0 0; padding: 0; list-style: none; }
.rows > li { display: grid; grid-template-columns: 1.4rem minmax(0, 1fr) 13rem 4.8rem 9.5rem; gap: 0 .6rem;
  align-items: center; padding: .4rem 0; border-top: 1px solid var(--line); }
.rows .name { font-weight: 600; }
.rows .why { grid-column: 2 / -1; margin: .1rem 0 0; font-size: .93rem; }
.rows .why b { font-weight: 600; }
.rows .hush, .hush { color: var(--muted); }
.hush::before { content: '⏾ '; content: '⏾ ' / ''; }
.rows .days { height: 1.15rem; }
.rows .share { text-align: right; font-variant-numeric: tabular-nums; font-size: .9rem; }
.rows .when { text-align: right; font-size: .85rem; white-space: normal; }
.rows .fail .share, .fail > .share { color: var(--fail); }
.axis { display: flex; justify-content: space-between; color: var(--muted); font-size: .82rem; margin: .15rem 0 .4rem; }
svg { display: block; width: 100%; height: 2.2rem; }
.bars { height: 2.6rem; }
.bars .ok { fill: var(--ok-bar); }
.bars .warn { fill: var(--warn-bar); }
.bars .fail { fill: var(--fail-bar); }
.bars .none { fill: var(--none-bar); }
.days path { fill: none; stroke-width: 32; stroke-dasharray: 8 2; }
.days .ok { stroke: var(--ok-bar); }
.days .warn { stroke: var(--warn-bar); }
.days .fail { stroke: var(--fail-bar); }
.days .none { stroke: var(--none-bar); }
.trend { width: 22rem; max-width: 40vw; height: 1.9rem; }
.trend path, .chart .line { fill: none; stroke: var(--link); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
h2 .when { font-size: .9rem; font-weight: 400; white-space: normal; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); gap: .6rem 2.5rem; }
.charts figure { margin: .5rem 0 0; min-width: 0; font-size: .93rem; }
.charts figure:first-child { grid-column: 1 / -1; }
.chart { width: calc(100% - 5.2rem); height: 9rem; margin: .7rem 1.4rem 1.7rem 3.8rem; overflow: visible; }
.chart svg { height: 100%; }
.chart line { stroke: var(--line); }
.chart text { fill: var(--muted); font-size: .82rem; }
.chart .value { text-anchor: end; dominant-baseline: middle; transform: translateX(-.5rem); }
.chart .time { text-anchor: middle; transform: translateY(1.3em); }
.chart .band { fill: var(--link); opacity: .2; }
.chart rect { fill: transparent; }
.chart rect:hover { fill: var(--link); opacity: .2; }

table { width: 100%; border-collapse: collapse; margin: .5rem 0; font-size: .95rem; }
th, td { padding: .45rem .4rem .45rem 0; text-align: left; vertical-align: baseline; border-top: 1px solid var(--line); }
th { width: 6rem; font-weight: 600; white-space: nowrap; }
tr:first-child > [scope=col] { border-top: 0; }
.when { display: inline-block; text-indent: 0; color: var(--muted); white-space: nowrap; }
.availability th, .figures th { width: auto; }
.availability :is(th, td), .figures td { overflow-wrap: break-word; }
.availability td b { font-size: 1.15rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.availability td.fail b { color: var(--fail); }
.availability td.ok b { color: var(--ok); }
.figures th { font-weight: 400; white-space: normal; }
.figures :is(th, td) { vertical-align: middle; }
.figures td { font-variant-numeric: tabular-nums; }
.figures th[scope=col], .availability th[scope=col] { font-weight: 600; color: var(--muted); font-size: .85rem; }
.fields th { width: 45%; font-weight: 400; white-space: normal; }
.fields td:last-child { padding-right: 0; }

button, .button { padding: .3rem .75rem; border: 1px solid var(--line); border-radius: .4rem; cursor: pointer;
  background: var(--back); color: var(--link); font: inherit; font-size: .9rem; }
button:hover { border-color: var(--link); }
button.main { background: var(--link); color: var(--card); border-color: var(--link); font-weight: 600; }
:is(a, button, summary, input, select):focus-visible { outline: 3px solid var(--link); outline-offset: 2px;
  border-radius: .2rem; }
input, select { padding: .35rem .5rem; border: 1px solid var(--muted); border-radius: .4rem; background: var(--card);
  color: var(--text); font: inherit; max-width: 100%; }
label { font-weight: 600; }
.find { display: flex; flex-wrap: wrap; gap: .4rem .6rem; align-items: center; margin: 0; }
.find input { flex: 1 1 14rem; min-width: 0; }
.sign-in { max-width: 26rem; }
.sign-in label { display: block; margin: .7rem 0 .2rem; }
.sign-in input:not([type=checkbox]) { width: 100%; }
.sign-in .check { display: flex; gap: .5rem; align-items: baseline; margin: .8rem 0; }
.sign-in .check label { margin: 0; font-weight: 400; }
.refusal, .done { padding: .6rem .9rem; border: 1px solid var(--fail); border-radius: .6rem; color: var(--fail);
  background: var(--fail-back); }
.done { margin: 0 0 1rem; border-color: var(--line); color: var(--text); background: var(--card); }

article { padding: .6rem .85rem; margin: .6rem 0; border: 1px solid var(--line); border-left: .3rem solid var(--warn-bar);
  border-radius: .4rem; }
article.fail { border-left-color: var(--fail-bar); }
article h3 { margin: 0; font-size: 1.02rem; }
.fault { margin: .4rem 0 0; }
.fault b { margin-right: .2rem; }
.fault.fail b { color: var(--fail); }
.fault.warn b { color: var(--warn); }
.fault + .muted { margin: 0 0 .4rem; }
.victims, .ended { margin: .35rem 0; padding: 0; list-style: none; font-size: .92rem; }
.victims { columns: 20rem; column-gap: 2rem; }
.victims li, .ended li { padding: .2rem 0; break-inside: avoid; }
.victims .when, .ended .when { white-space: normal; }
details { border-top: 1px solid var(--line); padding: .3rem 0; margin-top: .4rem; }
section > details:first-child { border: 0; margin: 0; padding: 0; }
details details { margin-left: 1rem; }
summary { cursor: pointer; padding: .2rem 0; }
summary h2 { display: inline; }
summary .state { font-size: .82rem; }
details[open] > summary { font-weight: 600; }
details:target { background: var(--back); border-radius: .4rem; padding: .4rem .6rem; }
.report { margin: .3rem 0 .3rem 1.2rem; }
.checks { margin: 0; padding: 0; list-style: none; font-size: .92rem; }
.checks b { font-weight: 600; margin-right: .3rem; }
.checks li { padding: .2rem 0 .2rem 1.4rem; text-indent: -1.4rem; }
.checks .detail { display: block; text-indent: 0; color: var(--muted); white-space: pre-wrap; }
details h3 { padding-left: 1.4rem; text-indent: -1.4rem; }
.mark { display: inline-block; width: 1.4rem; text-indent: 0; font-weight: 700; }
.mark.ok { color: var(--ok); }
.mark.warn, .mark.unchecked { color: var(--warn); }
.mark.fail { color: var(--fail); }
.many { columns: 26rem; column-gap: 2rem; margin-top: .5rem; }
.many > div { break-inside: avoid; margin-bottom: .6rem; }
.many > div > :first-child { margin-top: 0; }
header nav a { display: inline-block; padding: .3rem .8rem .3rem 0; }
.paths { margin: .5rem 0; padding: 0; list-style: none; }
.paths li { padding: .15rem 0; }
.verb { display: inline-block; min-width: 3.6rem; margin-right: .35rem; font-size: .8rem; font-weight: 600;
  color: var(--muted); }
footer a { display: inline-block; padding: .3rem .6rem .3rem 0; }

.stale { position: fixed; inset: auto 0 0; z-index: 2; margin: 0; padding: .7rem 1.25rem; text-align: center;
  font-weight: 600; background: #7d1a1f; color: #fff; visibility: hidden; animation: appear 1ms 100s forwards; }
.stale a { color: #fff; }
@keyframes appear { to { visibility: visible; } }

body.board { max-width: none; min-height: 100vh; padding: 1.3vw 1.6vw; font-size: max(1.1rem, 2.2vw); line-height: 1.3;
  display: flex; flex-direction: column; gap: 1.2vw; }
.board header { border: 0; border-radius: .35em; margin: 0; padding: .5em .7em; color: #fff; background: #4a525d; }
.board header.ok { background: #12683a; }
.board header.warn, .board header.unchecked { background: #8a5a00; }
.board header.fail { background: #b0161d; }
.board header :is(.muted, a) { color: #fff; font-size: 1em; }
.board h1 { font-size: 1.9em; line-height: 1.15; text-wrap: wrap; }
.board main { display: flex; flex-direction: column; gap: .75vw; flex: 1; }
.board article { margin: 0; padding: .3em .6em; background: var(--card); border-left-width: .35em; }
.board .top { flex-wrap: nowrap; gap: 1em; }
.board h2 { font-size: 1.25em; flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.board article p { margin: 0; }
.board .top p { white-space: nowrap; }
.board .cause { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.board .muted, .board .state { font-size: 1em; }
.board .types { display: flex; flex-wrap: wrap; gap: .3em .4em; margin: auto 0 0; padding: 0; list-style: none; }
.board .types .state { padding: .1em .7em; }
.board .stale { animation-delay: 45s; inset: 0 0 auto; padding: .5em; font-size: 1.7em; background: #fff; color: #7d1a1f;
  border-bottom: .2em solid #b0161d; }
.board .stale a { color: inherit; }
.board :is(header, article, .types) { animation: fade 1ms 45s forwards; }
@keyframes fade { to { filter: grayscale(1); opacity: .45; } }

@media (max-width: 44rem) {
  body { padding: 0 .7rem 1rem; }
  h1 { font-size: 1.2rem; }
  section, header { padding: .75rem .8rem; }
  .rows > li { grid-template-columns: 1.4rem minmax(0, 1fr) auto; }
  .rows .days { grid-column: 2 / -1; grid-row: 3; margin-top: .25rem; height: .9rem; }
  .rows .share { grid-column: 3; grid-row: 1; }
  .rows .when { grid-column: 2 / -1; grid-row: 2; text-align: left; }
  .bar .who { margin-left: 0; }
  .availability [scope=col] { white-space: normal; }
  .availability td b { font-size: 1rem; }
  .board .top { flex-wrap: wrap; gap: 0 1em; } .board :is(h2, .cause) { flex-basis: 100%; white-space: normal; }
  .figures :is(th, td):last-child { display: none; }
  th { width: auto; } .when { white-space: normal; }
}
`
