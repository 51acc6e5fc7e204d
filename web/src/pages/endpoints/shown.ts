/** What of an endpoint is shown: states as signs, and the load of all its versions together. */
import type { Schemas } from "../../api/client";
import type { StateTone } from "../../theme/tokens";
import { Meter } from "./meter";

export type EndpointView = Schemas["EndpointView"];
export type VersionView = Schemas["VersionView"];

/** The state of a job whose sign fits, and its tone. */
export const SIGNS: Readonly<Record<string, { sign: string; tone: StateTone }>> = {
  stopped: { sign: "stopped", tone: "stopped" },
  starting: { sign: "starting", tone: "starting" },
  idle: { sign: "paused", tone: "paused" },
  serving: { sign: "running", tone: "running" },
  ready: { sign: "running", tone: "running" },
  waiting: { sign: "pending", tone: "waiting" },
  leaving: { sign: "stopping", tone: "waiting" },
  retired: { sign: "stopped", tone: "stopped" },
  failed: { sign: "failed", tone: "failed" },
};

export interface LoadNow {
  /** Requests per second, answered; null if nothing reports. */
  rate: number | null;
  /** The share of requests that ended with an error. */
  errors: number | null;
  /** Seconds, of the slowest version. */
  p50: number | null;
  p99: number | null;
  queued: number;
  ready: number;
  wanted: number;
}

const meter = new Meter();

/** The load of all versions of an endpoint together, as the gateway said last; `at`: when that was asked, in ms. */
export function loadOf(endpoint: EndpointView, at: number): LoadNow {
  const loads = endpoint.versions.flatMap((version) => (version.load === null ? [] : [version.load]));
  const slowest = (share: string) => {
    const found = loads.flatMap((load) => load.latency_s?.[share] ?? []);
    return found.length === 0 ? null : Math.max(...found);
  };
  const totals = loads.map((load) => load.totals);
  const failed = sum(totals.map((total) => total.failed ?? 0));
  const done = failed + sum(totals.map((total) => (total.succeeded ?? 0) + (total.rejected ?? 0)));
  const pace = loads.length === 0 ? null : meter.observe(endpoint.name, { at: at / 1000, done, failed });
  return {
    rate: pace?.rate ?? null,
    errors: pace?.errors ?? null,
    p50: slowest("p50"),
    p99: slowest("p99"),
    queued: sum(loads.map((load) => load.queued)),
    ready: readyOf(endpoint),
    wanted: sum(endpoint.versions.map((version) => version.wanted)),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The versions that have traffic or run, the one with the most first. */
export function livingVersions(endpoint: EndpointView): VersionView[] {
  return endpoint.versions
    .filter((version) => version.traffic > 0 || version.num_kernels > 0 || version.state === "starting")
    .sort((a, b) => b.traffic - a.traffic || b.number - a.number);
}

/** Neighbours have colours that are told apart, and a version keeps its own. */
export function colourOfVersion(number: number): number {
  return (number - 1) % 8;
}

/** Which version has how much of the traffic: `v3 90 % / v4 10 %`. */
export function trafficText(endpoint: EndpointView): string {
  const with_ = livingVersions(endpoint).filter((version) => version.traffic > 0);
  return with_.map((version) => `v${version.number} ${version.traffic} %`).join(" / ");
}

/** The version that serves; before one does, the newest. */
export function mainVersion(endpoint: EndpointView): VersionView | undefined {
  return endpoint.versions.find((version) => version.number === endpoint.current) ?? endpoint.versions.at(-1);
}

/** Kernels that take requests. */
export function readyOf(endpoint: EndpointView): number {
  return sum(endpoint.versions.map((version) => version.num_ready));
}
