/** The one place that names the language. A page's words stand in a file of their own, called like the page. */
import { common } from "./en/common";
import { events } from "./en/events";
import { logon } from "./en/logon";
import { machines } from "./en/machines";
import { overview } from "./en/overview";
import { queues } from "./en/queues";
import { slots } from "./en/slots";
import { usage } from "./en/usage";

export const text = { ...common, events, logon, machines, overview, queues, slots, usage };
