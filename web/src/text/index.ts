/** The one place that names the language. A page's words stand in a file of their own, called like the page. */
import { common } from "./en/common";
import { logon } from "./en/logon";
import { overview } from "./en/overview";
import { slots } from "./en/slots";

export const text = { ...common, logon, overview, slots };
