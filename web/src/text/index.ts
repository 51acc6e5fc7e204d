/** The one place that names the language. A page's words stand in a file of their own, called like the page. */
import { common } from "./en/common";
import { logon } from "./en/logon";
import { models } from "./en/models";

export const text = { ...common, logon, models };
