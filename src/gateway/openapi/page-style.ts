// The style sheet of the API page.
import { pageStyle } from "../html.ts"

export const style = `${pageStyle}
h1{margin:0 0 .5rem}h2{font-size:1.3rem;margin:3.5rem 0 .3rem;scroll-margin-top:1rem}
h3{font-size:1.05rem;margin:2.2rem 0 .3rem;scroll-margin-top:1rem}
h2 a,h3 a{color:inherit;text-decoration:none}a:hover{text-decoration:underline}
b{color:var(--key)}.post,.put,.patch{color:light-dark(#070,#7d8)}
.delete{color:light-dark(#a20,#f98)}i{color:var(--dim);font-style:normal;font-size:.85rem}
nav{columns:2 22rem;column-gap:2.5rem;margin:2rem 0}
nav section{break-inside:avoid;padding-bottom:1.5rem}ol{padding-left:1.4rem}
nav h2{font-size:1rem;margin:0 0 .3rem;border-bottom:1px solid var(--line)}
ul{padding-left:1.2rem}nav ul{list-style:none;margin:0;padding:0}
nav li a{display:block;padding:.25rem 0;text-decoration:none}nav i{display:block}
table{border-collapse:collapse;width:100%;margin:.3rem 0}td{vertical-align:top;
padding:.3rem 1rem .3rem 0;border-top:1px solid var(--line)}td:first-child{width:4rem}
.parameters td:first-child{width:12rem}
code,pre{font:.85rem/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
pre{background:var(--box);border-radius:.3rem;padding:.6rem .8rem;white-space:pre-wrap;
margin:.5rem 0}details{margin:.2rem 0;scroll-margin-top:1rem}
summary{cursor:pointer;color:var(--dim);font-size:.9rem}
@media(max-width:40rem){.parameters td{display:block}.parameters td+td{border:0;
padding-top:0}.parameters td:first-child{width:auto;padding-bottom:0}}`
