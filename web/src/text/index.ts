/** The one place that names the language. A page's words stand in a file of their own, called like the page. */
import { audit } from "./en/audit";
import { common } from "./en/common";
import { datasets } from "./en/datasets";
import { endpoints } from "./en/endpoints";
import { environments } from "./en/environments";
import { events } from "./en/events";
import { files } from "./en/files";
import { histograms } from "./en/histograms";
import { job } from "./en/job";
import { jobs } from "./en/jobs";
import { logon } from "./en/logon";
import { machines } from "./en/machines";
import { me } from "./en/me";
import { models } from "./en/models";
import { overview } from "./en/overview";
import { people } from "./en/people";
import { queues } from "./en/queues";
import { searches } from "./en/searches";
import { settings } from "./en/settings";
import { sharing } from "./en/sharing";
import { slots } from "./en/slots";
import { submission } from "./en/submission";
import { usage } from "./en/usage";
import { violation } from "./en/violation";

export const text = {
  ...common,
  audit,
  datasets,
  endpoints,
  environments,
  events,
  files,
  histograms,
  job,
  jobs,
  logon,
  machines,
  me,
  models,
  overview,
  people,
  queues,
  searches,
  settings,
  sharing,
  slots,
  submission,
  usage,
  violation,
};
