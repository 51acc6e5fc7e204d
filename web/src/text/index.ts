/** The one place that names the language. A page's words stand in a file of their own, called like the page. */
import { audit } from "./en/audit";
import { common } from "./en/common";
import { events } from "./en/events";
import { logon } from "./en/logon";
import { machines } from "./en/machines";
import { me } from "./en/me";
import { overview } from "./en/overview";
import { people } from "./en/people";
import { queues } from "./en/queues";
import { settings } from "./en/settings";
import { slots } from "./en/slots";
import { usage } from "./en/usage";

export const text = {
  ...common,
  audit,
  events,
  logon,
  machines,
  me,
  overview,
  people,
  queues,
  settings,
  slots,
  usage,
};
