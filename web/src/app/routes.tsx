import { type ComponentType, lazy } from "react";
import type { RouteObject } from "react-router";
import { Frame } from "./Frame";
import { Crashed, NotFound } from "./Lost";
import { LoggedOn } from "./session";

/** A page whose code comes when it is visited first. */
function page(load: () => Promise<{ default: ComponentType }>, ...paths: string[]): RouteObject[] {
  const Shown = lazy(load);
  return paths.map((path) => ({ path, element: <Shown />, errorElement: <Crashed /> }));
}

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
      { path: "*", element: <NotFound /> },
    ],
  },
];
