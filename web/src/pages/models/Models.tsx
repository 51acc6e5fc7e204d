import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { useLocation } from "react-router";
import { useMay } from "../../app/session";
import { LinkTabs } from "../../components/LinkTabs";
import { Page } from "../../components/Page";
import { useAddress } from "../../components/useAddress";
import { text } from "../../text";
import { ModelDialog } from "./ModelDialog";
import { ModelsTable } from "./ModelsTable";
import { TemplateDialog } from "./TemplateDialog";
import { TemplatesTable } from "./TemplatesTable";
import { TrainDialog } from "./TrainDialog";
import { TrainingsTable } from "./TrainingsTable";

const words = text.models;

const TABS = [
  { to: "/models", title: words.tabs.models, exact: true },
  { to: "/models/templates", title: words.tabs.templates },
  { to: "/models/trainings", title: words.tabs.trainings },
  { to: "/models/weights", title: words.tabs.weights },
];

/** Templates, models, their trainings and weights: a tab and an address for each. */
export default function Models() {
  const { pathname } = useLocation();
  const address = useAddress();
  const mayWrite = useMay("models:write");
  const [adding, setAdding] = useState<"model" | "template" | null>(null);
  const tab = TABS.findIndex((one) => one.to === pathname);
  const title = TABS[tab]?.title ?? words.title;
  const training = address.get("train");
  const newModel = (
    <Button leftSection={<IconPlus size={16} />} onClick={() => setAdding("model")}>
      {words.newModel}
    </Button>
  );
  const addTemplate = (
    <Button
      variant={tab === 1 ? "filled" : "default"}
      leftSection={<IconPlus size={16} />}
      onClick={() => setAdding("template")}
    >
      {words.addTemplate}
    </Button>
  );
  return (
    <Page
      title={title}
      heading={words.title}
      actions={
        mayWrite && (
          <>
            {tab < 2 && addTemplate}
            {tab === 0 && newModel}
          </>
        )
      }
    >
      <LinkTabs label={words.tabs.label} tabs={TABS} />
      {tab === 1 ? (
        <TemplatesTable add={mayWrite ? addTemplate : null} />
      ) : tab === 2 ? (
        <TrainingsTable key="trainings" />
      ) : tab === 3 ? (
        <TrainingsTable key="weights" onlyWeights />
      ) : (
        <ModelsTable add={mayWrite ? newModel : null} />
      )}
      {adding === "model" && <ModelDialog onClose={() => setAdding(null)} />}
      {adding === "template" && <TemplateDialog onClose={() => setAdding(null)} />}
      {training !== null && mayWrite && <TrainDialog model={training} onClose={() => address.set({ train: null })} />}
    </Page>
  );
}
