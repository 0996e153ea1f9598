"""The look of a page: calm, aligned, light and dark, from a telephone to a wall, and on paper."""

from __future__ import annotations

from privcov.report.drawing import THEME, Markup

PAGE = Markup(
    THEME
    + """
*{box-sizing:border-box}
html{font:16px/1.6 var(--font);background:var(--paper);color:var(--ink);-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:76rem;padding:2.5rem clamp(1rem,4vw,3.5rem) 5rem}
h1{font-size:clamp(1.7rem,4.5vw,2.5rem);line-height:1.2;font-weight:650;margin:0 0 .4rem;overflow-wrap:anywhere;
letter-spacing:-.01em}
h2{font-size:1.35rem;line-height:1.3;font-weight:620;margin:0 0 1rem;overflow-wrap:anywhere}
h3{font-size:1rem;font-weight:620;margin:1.6rem 0 .4rem}
p,li,figcaption,dd{overflow-wrap:anywhere}
p,ul{max-width:70ch;margin:.5rem 0}
ul{padding-left:1.2rem}li{margin:.25rem 0}li::marker{color:var(--soft)}
.lead{color:var(--soft);font-size:1.05rem;margin:0}
nav{margin:1.6rem 0 0;font-size:.92rem;display:flex;flex-wrap:wrap;gap:.3rem 1.2rem}
nav a{color:var(--accent);text-decoration:none;padding:.15rem 0}nav a:hover{text-decoration:underline}
section{margin-top:3rem;padding-top:2rem;border-top:1px solid var(--rule)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,13rem),1fr));gap:1.1rem 2rem;
margin:0 0 1.4rem}
.facts dt{font-size:.82rem;color:var(--soft);letter-spacing:.01em}
.facts dd{margin:.1rem 0 0;font-size:1.08rem;font-weight:560;font-variant-numeric:tabular-nums}
.beside{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27.5rem),1fr));gap:2rem 3rem;
align-items:start;margin:1rem 0}
.beside>*{min-width:0}
figure{margin:0}
figcaption{color:var(--soft);font-size:.9rem;line-height:1.5;margin-top:.7rem;max-width:60ch}
.note{color:var(--soft);font-size:.9rem;line-height:1.5;margin:.6rem 0 0}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.92rem;line-height:1.35;font-variant-numeric:tabular-nums lining-nums;
margin:.4rem 0}
th,td{padding:.38rem .9rem .38rem 0;text-align:left;vertical-align:baseline;border-bottom:1px solid var(--rule);
white-space:nowrap}
thead th{color:var(--soft);font-weight:500;font-size:.84rem;border-bottom-color:var(--soft);vertical-align:bottom}
tbody th{font-weight:560}
th.n,td.n{text-align:right;padding:.38rem 0 .38rem 1.1rem}
details{margin:.8rem 0}summary{cursor:pointer;color:var(--accent);padding:.2rem 0}
pre{background:var(--shade);border:1px solid var(--rule);border-radius:6px;padding:.8rem 1rem;overflow-x:auto;
font:.86rem/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;margin:.8rem 0}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
code.long{font-size:.82rem;font-weight:400;overflow-wrap:anywhere}
.warning{border-left:3px solid var(--warn);background:var(--warn-shade);color:var(--warn);padding:.6rem 1rem;
border-radius:0 6px 6px 0;font-weight:560}
footer{margin-top:3.5rem;color:var(--soft);font-size:.86rem}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
@media (max-width:480px){html{font-size:15px}tbody th{white-space:normal;min-width:6.5rem}
.facts{grid-template-columns:1fr 1fr;gap:1rem}
.facts>:has(code){grid-column:1/-1}section{margin-top:2.2rem;padding-top:1.5rem}}
@media print{html{font-size:10pt}body{max-width:none;padding:0}nav{display:none}section{break-inside:auto;
margin-top:1.5rem;padding-top:1rem}figure,table,pre,.facts{break-inside:avoid}h2,h3{break-after:avoid}
.scroll{overflow:visible}pre{white-space:pre-wrap;overflow-wrap:anywhere}table{font-size:8pt}
th,td{padding-right:.4rem}th.n,td.n{padding-left:.5rem}
.beside{grid-template-columns:1fr 1fr}}
"""
)
