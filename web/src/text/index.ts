/** The one place that names the language. A page's words stand in a file of their own, called like the page. */
import { common } from "./en/common";
import { datasets } from "./en/datasets";
import { endpoints } from "./en/endpoints";
import { environments } from "./en/environments";
import { events } from "./en/events";
import { files } from "./en/files";
import { logon } from "./en/logon";
import { machines } from "./en/machines";
import { overview } from "./en/overview";
import { queues } from "./en/queues";
import { searches } from "./en/searches";
import { sharing } from "./en/sharing";
import { slots } from "./en/slots";
import { submission } from "./en/submission";
import { usage } from "./en/usage";
import { violation } from "./en/violation";

export const text = { ...common, datasets, endpoints, environments, events, files, logon, machines, overview, queues, searches, sharing, slots, submission, usage, violation };
