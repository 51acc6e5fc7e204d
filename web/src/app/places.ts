import {
  IconActivity,
  IconAdjustments,
  IconBox,
  IconBrandPython,
  IconChartHistogram,
  IconClipboardList,
  IconDatabase,
  IconLayoutDashboard,
  IconListDetails,
  IconPlugConnected,
  IconSearch,
  IconServer2,
  IconSitemap,
  IconStack2,
  IconUsers,
} from "@tabler/icons-react";
import type { ComponentType } from "react";
import { text } from "../text";
import type { Permission } from "./session";

export interface Place {
  path: string;
  title: string;
  icon: ComponentType<{ size?: number; "aria-hidden"?: boolean; stroke?: number }>;
  needs: Permission;
  /** The letter after `G` that leads there. */
  key?: string;
}

export interface Group {
  title: string | null;
  places: readonly Place[];
}

/** Where one can go: the rail, the palette and the keys are made of it. */
export const PLACES: readonly Group[] = [
  {
    title: null,
    places: [
      { path: "/", title: text.nav.overview, icon: IconLayoutDashboard, needs: "pool:read", key: "o" },
      { path: "/jobs", title: text.nav.jobs, icon: IconListDetails, needs: "jobs:read", key: "j" },
      { path: "/endpoints", title: text.nav.endpoints, icon: IconPlugConnected, needs: "endpoints:read", key: "e" },
      { path: "/searches", title: text.nav.searches, icon: IconSearch, needs: "jobs:read", key: "s" },
    ],
  },
  {
    title: text.nav.build,
    places: [
      { path: "/models", title: text.nav.models, icon: IconBox, needs: "models:read", key: "m" },
      { path: "/datasets", title: text.nav.datasets, icon: IconDatabase, needs: "data:read", key: "d" },
      { path: "/environments", title: text.nav.environments, icon: IconBrandPython, needs: "models:read" },
    ],
  },
  {
    title: text.nav.pool,
    places: [
      { path: "/queues", title: text.nav.queues, icon: IconStack2, needs: "pool:read", key: "q" },
      { path: "/machines", title: text.nav.machines, icon: IconServer2, needs: "pool:read", key: "h" },
      { path: "/usage", title: text.nav.usage, icon: IconChartHistogram, needs: "jobs:read", key: "u" },
      { path: "/events", title: text.nav.events, icon: IconActivity, needs: "jobs:read" },
    ],
  },
  {
    title: text.nav.admin,
    places: [
      { path: "/people", title: text.nav.people, icon: IconUsers, needs: "users:write" },
      { path: "/audit", title: text.nav.audit, icon: IconClipboardList, needs: "audit:read" },
      { path: "/settings", title: text.nav.settings, icon: IconAdjustments, needs: "server:write" },
    ],
  },
];

export const SUBMIT_ICON = IconSitemap;

/** The groups with the places that somebody may see; a group without any is left out. */
export function placesOf(permissions: readonly string[]): Group[] {
  return PLACES.map((group) => ({
    ...group,
    places: group.places.filter((place) => permissions.includes(place.needs)),
  })).filter((group) => group.places.length > 0);
}
