// Asks for an address: java Publish.java notes Notes 8000
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

class Publish {
    public static void main(String[] args) throws Exception {
        String api = System.getenv().getOrDefault("PORCHLIGHT_API", "127.0.0.1:8765");
        HttpClient client = HttpClient.newHttpClient();
        HttpRequest status = HttpRequest.newBuilder(URI.create("http://" + api + "/status")).build();
        HttpResponse<String> answer = client.send(status, HttpResponse.BodyHandlers.ofString());
        System.out.println(answer.statusCode() + " " + answer.body().strip());

        String body = String.format("{\"name\":\"%s\",\"label\":\"%s\",\"localPort\":%s}", args[0], args[1], args[2]);
        HttpRequest publish = HttpRequest.newBuilder(URI.create("http://" + api + "/publish"))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
        answer = client.send(publish, HttpResponse.BodyHandlers.ofString());
        System.out.println(answer.statusCode() + " " + answer.body().strip());
    }
}
