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
      ...page(() => import("../pages/jobs/Jobs"), "/jobs"),
      ...page(() => import("../pages/job/Compare"), "/jobs/compare"),
      ...page(() => import("../pages/job/JobPage"), "/jobs/:id/:tab?"),
      { path: "*", element: <NotFound /> },
    ],
  },
];
