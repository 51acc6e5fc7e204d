/** The one place that names the language. A page's words stand in a file of their own, called like the page. */
import { common } from "./en/common";
import { datasets } from "./en/datasets";
import { environments } from "./en/environments";
import { files } from "./en/files";
import { logon } from "./en/logon";
import { models } from "./en/models";
import { sharing } from "./en/sharing";
import { slots } from "./en/slots";
import { submission } from "./en/submission";
import { violation } from "./en/violation";

export const text = {
  ...common,
  datasets,
  environments,
  files,
  logon,
  models,
  sharing,
  slots,
  submission,
  violation,
};
