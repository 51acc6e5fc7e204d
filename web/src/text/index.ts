/** The one place that names the language. A page's words stand in a file of their own, called like the page. */
import { audit } from "./en/audit";
import { common } from "./en/common";
import { logon } from "./en/logon";
import { me } from "./en/me";
import { people } from "./en/people";
import { settings } from "./en/settings";
import { slots } from "./en/slots";

export const text = { ...common, audit, logon, me, people, settings, slots };
