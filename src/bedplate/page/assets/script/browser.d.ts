// What stands beside the page's own script, as far as it is used, and what TypeScript's own DOM is too old for.

declare const Plotly: any;

interface Window {
  Plotly: any;
}

// The script finds the page's own controls by their ids and events; which kind each of them is stands in the template.
interface EventTarget {
  value?: any;
  checked?: any;
  closest?: any;
  contains?: any;
  matches?: any;
  open?: any;
}

interface Element extends HTMLOrSVGElement {
  checked?: any;
  hidden: any;
  open?: any;
  rows?: any;
  value?: any;
}

// A drawing of plotly's knows its own layout, and tells what is done to it.
interface HTMLElement {
  _fullLayout?: any;
  on?: any;
  removeAllListeners?: any;
}
