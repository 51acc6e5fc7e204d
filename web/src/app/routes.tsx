import { type ComponentType, lazy } from "react";
import { Navigate, type RouteObject } from "react-router";
import { Frame } from "./Frame";
import { Crashed, NotFound } from "./Lost";
import { LoggedOn } from "./session";

/** A page whose code comes when it is visited first. */
function page(load: () => Promise<{ default: ComponentType }>, ...paths: string[]): RouteObject[] {
  const Shown = lazy(load);
  return paths.map((path) => ({ path, element: <Shown />, errorElement: <Crashed /> }));
}

/** The first part of a thing has the thing's own address; who writes its name comes there. */
const FIRST_PARTS = ["/jobs/:id", "/endpoints/:name", "/searches/:name", "/datasets/:name", "/environments/:name"].map(
  (path): RouteObject => ({ path: `${path}/overview`, element: <Navigate to=".." relative="path" replace /> }),
);

export const routes: RouteObject[] = [
  ...page(() => import("../pages/logon/Logon"), "/logon"),
  {
    element: (
      <LoggedOn>
        <Frame />
      </LoggedOn>
    ),
    errorElement: <Crashed />,
    children: [
      ...page(() => import("../pages/overview/Overview"), "/"),
      ...page(
        () => import("../pages/models/Models"),
        "/models",
        "/models/templates",
        "/models/trainings",
        "/models/weights",
      ),
      ...page(() => import("../pages/models/Template"), "/models/templates/:name"),
      ...page(() => import("../pages/models/Model"), "/models/:name", "/models/:name/trainings"),
      ...page(() => import("../pages/models/Training"), "/models/:name/trainings/:training"),
      ...page(() => import("../pages/queues/Queues"), "/queues"),
      ...page(() => import("../pages/queues/QueuePage"), "/queues/:name"),
      ...page(() => import("../pages/queues/GroupPage"), "/queues/groups/:name"),
      ...page(() => import("../pages/machines/Machines"), "/machines"),
      ...page(() => import("../pages/usage/Usage"), "/usage"),
      ...page(() => import("../pages/events/Events"), "/events"),
      ...page(() => import("../pages/endpoints/Endpoints"), "/endpoints"),
      ...page(() => import("../pages/endpoints/Endpoint"), "/endpoints/:name/:tab?"),
      ...page(() => import("../pages/searches/Searches"), "/searches"),
      ...page(() => import("../pages/searches/NewSearch"), "/searches/new"),
      ...page(() => import("../pages/searches/Search"), "/searches/:name/:tab?"),
      ...page(() => import("../pages/submit/Submit"), "/submit"),
      ...page(() => import("../pages/datasets/Datasets"), "/datasets"),
      ...page(() => import("../pages/datasets/NewDataset"), "/datasets/-new"),
      ...page(() => import("../pages/datasets/DatasetPage"), "/datasets/:name/:tab?"),
      ...page(() => import("../pages/environments/Environments"), "/environments"),
      ...page(() => import("../pages/environments/NewEnvironment"), "/environments/-new"),
      ...page(() => import("../pages/environments/EnvironmentPage"), "/environments/:name/:tab?"),
      ...page(() => import("../pages/account/Account"), "/me"),
      ...page(() => import("../pages/people/People"), "/people"),
      ...page(() => import("../pages/people/Person"), "/people/:name"),
      ...page(() => import("../pages/audit/Audit"), "/audit"),
      ...page(() => import("../pages/settings/Settings"), "/settings"),
      ...page(() => import("../pages/jobs/Jobs"), "/jobs"),
      ...page(() => import("../pages/job/Compare"), "/jobs/compare"),
      ...page(() => import("../pages/job/JobPage"), "/jobs/:id/:tab?"),
      ...FIRST_PARTS,
      { path: "*", element: <NotFound /> },
    ],
  },
];
