import { Page } from "../../components/Page";
import { SlotsPanel } from "../../slots/SlotsPanel";
import { text } from "../../text";

export default function Overview() {
  return (
    <Page title={text.nav.overview}>
      <SlotsPanel />
    </Page>
  );
}
