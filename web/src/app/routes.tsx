import { type ComponentType, lazy } from "react";
import { Navigate, type RouteObject } from "react-router";
import { Frame } from "./Frame";
import { Allowed, Crashed, NotFound } from "./Lost";
import { LoggedOn, type Permission } from "./session";

/** A page whose code comes when it is visited first. */
function page(load: () => Promise<{ default: ComponentType }>, ...paths: string[]): RouteObject[] {
  const Shown = lazy(load);
  return paths.map((path) => ({ path, element: <Shown />, errorElement: <Crashed /> }));
}

/** A page that is nothing but what a permission allows. */
function pageFor(needs: Permission, ...[load, ...paths]: Parameters<typeof page>): RouteObject[] {
  return page(load, ...paths).map(({ element, ...route }) => ({
    ...route,
    element: <Allowed needs={needs}>{element}</Allowed>,
  }));
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
      ...pageFor("jobs:write", () => import("../pages/searches/NewSearch"), "/searches/new"),
      ...page(() => import("../pages/searches/Search"), "/searches/:name/:tab?"),
      ...pageFor("jobs:write", () => import("../pages/submit/Submit"), "/submit"),
      ...page(() => import("../pages/datasets/Datasets"), "/datasets"),
      ...pageFor("data:write", () => import("../pages/datasets/NewDataset"), "/datasets/-new"),
      ...page(() => import("../pages/datasets/DatasetPage"), "/datasets/:name/:tab?"),
      ...page(() => import("../pages/environments/Environments"), "/environments"),
      ...pageFor("models:write", () => import("../pages/environments/NewEnvironment"), "/environments/-new"),
      ...page(() => import("../pages/environments/EnvironmentPage"), "/environments/:name/:tab?"),
      ...page(() => import("../pages/account/Account"), "/me"),
      ...pageFor("users:write", () => import("../pages/people/People"), "/people"),
      ...pageFor("users:write", () => import("../pages/people/Person"), "/people/:name"),
      ...pageFor("audit:read", () => import("../pages/audit/Audit"), "/audit"),
      ...pageFor("server:write", () => import("../pages/settings/Settings"), "/settings"),
      ...page(() => import("../pages/jobs/Jobs"), "/jobs"),
      ...page(() => import("../pages/job/Compare"), "/jobs/compare"),
      ...page(() => import("../pages/job/JobPage"), "/jobs/:id/:tab?"),
      ...FIRST_PARTS,
      { path: "*", element: <NotFound /> },
    ],
  },
];
