import { Page } from "../../components/Page";
import { text } from "../../text";

export default function Overview() {
  return <Page title={text.nav.overview}>…</Page>;
}
