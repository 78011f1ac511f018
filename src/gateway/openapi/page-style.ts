// The style sheet of the API page.
import { pageStyle } from "../html.ts"

export const style = `${pageStyle}
h2{font:600 1.05rem ui-monospace,monospace;margin:3rem 0 .3rem;overflow-wrap:anywhere;
scroll-margin-top:1rem}h2 a{color:inherit;text-decoration:none}
b{color:var(--key)}i{color:var(--dim);font-style:normal;
font-size:.85rem}
nav a{display:block;padding:.2rem 0;text-decoration:none}nav code{margin-right:.6rem}
nav a:hover,h2 a:hover{text-decoration:underline}
table{border-collapse:collapse;width:100%;margin:.8rem 0}td{vertical-align:top;
padding:.3rem 1rem .3rem 0;border-top:1px solid var(--line)}td:first-child{width:4rem}
.parameters td:first-child{width:12rem}
code,pre{font:.85rem/1.5 ui-monospace,monospace}pre{background:var(--box);
padding:.6rem .8rem;white-space:pre-wrap;overflow-wrap:anywhere}summary{cursor:pointer}
@media(max-width:40rem){nav i,.parameters td{display:block}.parameters td+td{border:0;
padding-top:0}.parameters td:first-child{width:auto;padding-bottom:0}}`
